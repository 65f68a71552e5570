// Package redisstreams is a provider on Redis Streams: jobs, delays, claims, numbers
// and dead letters on one Redis server, a pair with sentinels, or a cluster. Redis 7.0
// or newer.
//
//	p, err := redisstreams.Open(ctx, redisstreams.Config{URL: "redis://localhost:6379"})
package redisstreams
