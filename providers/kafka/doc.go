// Package kafka is a provider on Apache Kafka, over the client segmentio/kafka-go: jobs
// are records in a topic per queue.
package kafka
