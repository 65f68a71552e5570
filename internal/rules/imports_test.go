package rules

// Packages of this module are written "./runtime", those of others by their path;
// "/..." takes in everything below. The standard library is open to all.
const (
	anything = "*"
	// messages are packages of what protoc-gen-go makes of a user's schema.
	messages = "(messages)"
	// tasks are packages of what we make of a task service.
	tasks = "(tasks)"

	protobuf = "google.golang.org/protobuf/..."
	gocmp    = "github.com/google/go-cmp/..."
)

// importRule says what packages may import. The first rule that fits a package is
// its rule; a package that none fits is a violation, so that a new room in the house
// gets its line here.
type importRule struct {
	packages string
	may      []string
	because  string
}

var importRules = []importRule{
	{"./schema/...", []string{"./schema/...", protobuf},
		"the language and the record stand below everything and know nobody"},
	{"./templates/...", nil,
		"templates are text; who fills them in is the command's business"},

	{"./codegen", []string{"./schema/...", "./templates/...", protobuf, "github.com/dave/jennifer/...", "golang.org/x/mod/module"},
		"the plugin gets its descriptors from protoc and must not carry a compiler"},
	{"./codegen/...", []string{"./codegen/...", "./schema/...", "./templates/...", protobuf,
		"github.com/bufbuild/protocompile/...", "go.yaml.in/yaml/v3", "golang.org/x/mod/..."},
		"the generator works on schemas alone: it needs neither the runtime nor a broker"},
	{"./cmd/protoc-gen-backstage/...", []string{"./cmd/protoc-gen-backstage/...", "./codegen", protobuf},
		"the plugin is codegen.Generate on stdin and stdout, and nothing more"},
	{"./cmd/backstage/...", []string{"./cmd/backstage/...", "./internal/command", "./codegen/...", "./schema/...", "./templates/...", protobuf,
		"go.yaml.in/yaml/v3", "golang.org/x/mod/..."},
		"a tool that every user's module requires must not bring in a broker's client"},
	{"./cmd/backstagectl/...", []string{"./cmd/backstagectl/...", "./internal/command", "./runtime/provider", "./providers", "./codegen/...", "./schema/...", protobuf},
		"the operators' tool works on every provider, through their contract"},

	{"./runtime", []string{"./runtime/provider", "./runtime/internal/...", protobuf},
		"the runtime decides and a provider obeys: it must work with every broker alike"},
	{"./runtime/provider", []string{"./schema/...", protobuf},
		"the contract has one owner of the record, and depends on nothing that may change"},
	{"./runtime/provider/providertest/...", []string{"./runtime", "./runtime/provider/...", "./schema/...", protobuf, gocmp},
		"the suite judges providers that it has never heard of"},
	{"./runtime/backstagetest/...", []string{"./runtime/...", "./providers/memory", protobuf, gocmp},
		"a user's unit test needs no broker"},
	{"./runtime/internal/...", []string{"./runtime/internal/...", "./runtime/provider", protobuf},
		"what the runtime hides obeys the runtime's rule"},

	{"./providers", []string{"./providers/...", "./runtime/provider"},
		"it opens any provider by URL, for tools and examples"},
	{"./providers/memory/...", []string{"./providers/memory/...", "./runtime/provider"},
		"the memory provider is plain Go"},
	{"./providers/embedded/...", []string{"./providers/embedded/...", "./providers/internal/...", "./runtime/provider", "modernc.org/sqlite/...", "golang.org/x/sys/..."},
		"a provider knows the contract and its own client: never the runtime, never another provider"},
	{"./providers/redisstreams/...", []string{"./providers/redisstreams/...", "./providers/internal/...", "./runtime/provider", "github.com/redis/go-redis/..."},
		"a provider knows the contract and its own client: never the runtime, never another provider"},
	{"./providers/rabbitmq/...", []string{"./providers/rabbitmq/...", "./providers/internal/...", "./runtime/provider", "github.com/rabbitmq/amqp091-go/..."},
		"a provider knows the contract and its own client: never the runtime, never another provider"},
	{"./providers/internal/...", []string{"./runtime/provider"},
		"what providers share knows none of them"},
	{"./providers/kafka/internal/tracker", nil,
		"what is settled, started and crashed is decided without a client, so that it can be tried without one"},
	{"./providers/kafka/...", []string{"./providers/kafka/...", "./providers/internal/...", "./runtime/provider", "github.com/segmentio/kafka-go/...", "github.com/twmb/franz-go/..."},
		"a provider knows the contract and its own client: never the runtime, never another provider"},

	{tasks, []string{"./runtime", messages, "google.golang.org/protobuf/types/known/..."},
		"generated code is the runtime and the user's messages: other generated tasks would make cycles of Go packages"},
	{messages, []string{messages, "./schema/...", protobuf},
		"messages are data, usable without Backstage's runtime"},

	{"./examples/...", []string{anything}, "an example shows whatever it shows"},
	{"./golden/...", []string{anything}, "the golden tests compile, load and run what was generated"},
	{"./internal/command", []string{"./codegen"},
		"the frame of the commands is part of what every user's module requires"},
	{"./internal/command/transcript", []string{gocmp, "golang.org/x/tools/txtar"},
		"transcripts test commands, and are no part of them"},
	{"./internal/rules", nil, "the rules read the repository, they are not part of it"},
	{"./internal/...", []string{anything}, "the rest of internal tests the whole, and starts what tests need; nothing else imports it"},
}

// testsMay is what tests may import beyond this module and what their package may.
var testsMay = []string{protobuf, gocmp, "golang.org/x/tools/txtar"}

const testsBecause = "tests are written with the standard library and go-cmp, so that everyone can read them"

// clients are the clients of brokers, by the provider that hides them.
var clients = map[string][]string{
	"./providers/embedded/...":     {"modernc.org/sqlite/...", "modernc.org/libc/...", "github.com/mattn/go-sqlite3/...", "github.com/ncruces/go-sqlite3/..."},
	"./providers/redisstreams/...": {"github.com/redis/...", "github.com/gomodule/redigo/..."},
	"./providers/rabbitmq/...":     {"github.com/rabbitmq/...", "github.com/streadway/amqp/...", "github.com/Azure/go-amqp/..."},
	"./providers/kafka/...":        {"github.com/segmentio/...", "github.com/twmb/...", "github.com/IBM/sarama/...", "github.com/confluentinc/..."},
}

// reachRule says what packages may not even reach through others: their users would
// have to download, build and trust it.
type reachRule struct {
	packages string
	never    []string
	because  string
}

func reachRules() []reachRule {
	var all []string
	for _, of := range clients {
		all = append(all, of...)
	}
	rules := []reachRule{
		{"./cmd/backstage/...", all, "the command brings in no broker's client"},
		{"./cmd/protoc-gen-backstage/...", all, "the plugin brings in no broker's client"},
		{"./internal/command", all, "the frame of the commands brings in no broker's client"},
		{"./codegen/...", all, "the generator brings in no broker's client"},
		{"./runtime/...", all, "the runtime, the contract and the test packages bring in no broker's client"},
		{"./providers/memory/...", all, "the memory provider brings in no broker's client"},
		{tasks, all, "generated code brings in no broker's client"},
	}
	for provider := range clients {
		var others []string
		for other, of := range clients {
			if other != provider {
				others = append(others, of...)
			}
		}
		rules = append(rules, reachRule{provider, others, "importing one provider brings in no other broker's client"})
	}
	return rules
}
