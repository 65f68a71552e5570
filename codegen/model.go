package codegen

import (
	"time"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Program is every task service that one run can see: those to generate and
// those that they import.
type Program struct {
	// Services are in the order of their files, dependencies first, and as
	// declared within a file.
	Services []*Service
}

// Service returns the task service of a full name, nil when there is none.
func (p *Program) Service(name protoreflect.FullName) *Service {
	for _, s := range p.Services {
		if s.FullName == name {
			return s
		}
	}
	return nil
}

// Tasks returns all tasks of all services.
func (p *Program) Tasks() []*Task {
	var out []*Task
	for _, s := range p.Services {
		out = append(out, s.Tasks...)
	}
	return out
}

// A Service is one task service and the Go package that is generated for it.
type Service struct {
	FullName protoreflect.FullName
	// GoName is the service's name in Go: "OrderTasks".
	GoName string
	// File is the schema that declares the service.
	File *protogen.File
	// GoPackage and GoImportPath are those of the generated package.
	GoPackage    string
	GoImportPath protogen.GoImportPath
	// OutFile is the generated file, named as protoc names outputs.
	OutFile string
	// Generate says whether this run writes the package, or only knows of the
	// service because another file imports it.
	Generate bool
	// Comment is what stands above the service in the schema.
	Comment string
	// Deprecated is protobuf's own option, of the service or its file.
	Deprecated bool
	Owner      string
	Tasks      []*Task
	Pos        Position

	desc *protogen.Service
}

// task returns the task of an rpc's own name.
func (s *Service) task(name string) *Task {
	for _, t := range s.Tasks {
		if string(t.FullName.Name()) == name {
			return t
		}
	}
	return nil
}

// A Task is one rpc of a task service.
type Task struct {
	Service *Service
	// FullName is the rpc's: "shop.orders.v1.OrderTasks.ChargeCard".
	FullName protoreflect.FullName
	// Name is the name on the wire; FullName unless the schema sets another.
	Name string
	// GoName is the rpc's name in Go.
	GoName  string
	Aliases []string
	// Payload is the rpc's request.
	Payload    *protogen.Message
	Policy     Policy
	Dedupe     *Key
	Ordering   *Key
	Edges      []*Edge
	Comment    string
	Deprecated bool
	Owner      string
	Pos        Position

	desc *protogen.Method
}

// An Edge says that Task may be followed by Target.
type Edge struct {
	Task, Target *Task
	// GoName is the method by which a handler takes the edge: "SendReceipt", or
	// "MailTasksSendReceipt" for a task of another service.
	GoName string
	Pos    Position
}

// An Origin says where a value was decided.
type Origin int

const (
	// BuiltIn is Backstage's own default.
	BuiltIn Origin = iota
	// FromService is the service's defaults.
	FromService
	// FromTask is the task itself.
	FromTask
)

// String returns the origin in a word, for catalogues.
func (o Origin) String() string {
	switch o {
	case FromService:
		return "service"
	case FromTask:
		return "task"
	}
	return "built-in"
}

// A Setting is one value of a policy and where it was decided.
type Setting[T any] struct {
	Value T
	From  Origin
}

// A Policy is what holds for the jobs of one task: the task's own options, then
// its service's, then the built-in ones.
type Policy struct {
	// Queue, Delay, Expires and DedupeFor are read where a job is made.
	Queue     Setting[string]
	Delay     Setting[time.Duration] // zero: none
	Expires   Setting[time.Duration] // zero: never
	DedupeFor Setting[Window]
	// Timeout, MaxAttempts, Backoff and MaxAge are read from the code of the
	// worker that runs the job.
	Timeout     Setting[time.Duration]
	MaxAttempts Setting[int32]
	Backoff     Setting[Backoff]
	MaxAge      Setting[time.Duration]
}

// A Window is how long a dedupe key holds.
type Window struct {
	For time.Duration
	// UntilDone holds the key until the job's outcome.
	UntilDone bool
}

// builtIn is what holds where a schema says nothing.
func builtIn() Policy {
	return Policy{
		Queue:       Setting[string]{Value: "default"},
		Timeout:     Setting[time.Duration]{Value: time.Minute},
		MaxAttempts: Setting[int32]{Value: 5},
		Backoff:     Setting[Backoff]{Value: Backoff{Min: time.Second, Max: time.Minute}},
		MaxAge:      Setting[time.Duration]{Value: 7 * day},
	}
}
