package brokers

// The environment that the tool sets for the command that it runs.
const (
	// Required, if set, says that brokers are there: a test that cannot have its server
	// fails. It is "1" for all brokers, or names of brokers with commas between them;
	// then the tests of others are skipped.
	Required = "BACKSTAGE_BROKERS"
	// RedisAddress is the host:port of the Redis server that all tests of a run share.
	RedisAddress = "BACKSTAGE_REDIS"
	// RabbitMQAddress is that of the RabbitMQ server. Its management API is on the next
	// port.
	RabbitMQAddress = "BACKSTAGE_RABBITMQ"
	// KafkaAddress is that of the Kafka server.
	KafkaAddress = "BACKSTAGE_KAFKA"
)
