// Package bench holds measurements of Backstage as ratios of things measured side
// by side in one run. Each folder is a program; README.md has the commands, what
// they measure, and figures:
//
//	go run ./overhead   what the runtime costs a job, on the memory provider
//	go run ./sqlite     the embedded provider beside a hand-written SQLite loop
//	go run ./drain      large backlogs beside small ones
//	go run ./generate   hundreds of schemas
//	go run ./redis/throughput  Redis Streams beside asynq and a hand-written loop;
//	                           and beside it pickup, idle, memory and takeover
//	go run ./rabbitmq/throughput  RabbitMQ beside a hand-written loop; and beside it
//	                              pickup, delays and takeover
//
// The same as benchmarks, in short: go test -run '^$' -bench . ./...
package bench

//go:generate go run github.com/backstage-go/backstage/cmd/backstage generate
