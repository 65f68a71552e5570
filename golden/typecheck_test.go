package golden_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
)

const (
	module  = "github.com/backstage-go/backstage"
	orders  = module + "/golden/shop/orders/v1"
	runtime = module + "/runtime"
)

// A checker type-checks source against what the go tool has compiled, and
// against packages that were only just generated.
type checker struct {
	mu        sync.Mutex
	fset      *token.FileSet
	compiled  types.Importer
	generated map[string]*types.Package
	sources   map[string][]*ast.File
}

// newChecker compiles the packages and all that they import.
func newChecker(t testing.TB, packages ...string) *checker {
	t.Helper()
	args := append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, packages...)
	var stderr bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	export := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		export[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	lookup := func(importPath string) (io.ReadCloser, error) {
		if export[importPath] == "" {
			return nil, fmt.Errorf("package %s is not compiled", importPath)
		}
		return os.Open(export[importPath])
	}
	return &checker{fset: fset, compiled: importer.ForCompiler(fset, "gc", lookup)}
}

// Import returns a package, checking it first if it was only just generated.
func (c *checker) Import(importPath string) (*types.Package, error) {
	if p := c.generated[importPath]; p != nil {
		return p, nil
	}
	if files := c.sources[importPath]; files != nil {
		p, err := c.check(importPath, files)
		c.generated[importPath] = p
		return p, err
	}
	return c.compiled.Import(importPath)
}

func (c *checker) check(importPath string, files []*ast.File) (*types.Package, error) {
	config := types.Config{Importer: c}
	return config.Check(importPath, c.fset, files, nil)
}

// snippet type-checks the body of a function in a package that imports the
// order service.
func (c *checker) snippet(body string) error {
	source := fmt.Sprintf(`package snippet

import (
	"context"
	"time"

	ordersv1 %q
	ordertasks %q
	backstage %q
)

var (
	_ = time.Second
	_ ordersv1.ChargeCardRequest
	_ backstage.Job
)

type shop struct{}

func (shop) ChargeCard(context.Context, *ordersv1.ChargeCardRequest, *ordertasks.ChargeCardNext) error { return nil }
func (shop) SendReceipt(context.Context, *ordersv1.SendReceiptRequest) error { return nil }
func (shop) ShipOrder(context.Context, *ordersv1.ShipOrderRequest) error { return nil }

func _(ctx context.Context, client *ordertasks.Client, worker *backstage.Worker, next *ordertasks.ChargeCardNext) {
	%s
}
`, orders, path.Join(orders, "ordertasks"), runtime, body)
	file, err := parser.ParseFile(c.fset, "snippet.go", source, 0)
	if err != nil {
		return err
	}
	_, err = c.check("snippet", []*ast.File{file})
	return err
}

func TestMistakesDoNotCompile(t *testing.T) {
	t.Parallel()
	c := newChecker(t, path.Join(orders, "ordertasks"))
	for _, test := range []struct {
		name, body, want string
	}{
		{"a job with options", `client.ChargeCard(ctx, &ordersv1.ChargeCardRequest{}, backstage.OnQueue("x"), backstage.In(time.Hour), backstage.WithID("1"))`, ""},
		{"an edge with options", `next.SendReceipt(&ordersv1.SendReceiptRequest{}, backstage.In(time.Hour), backstage.Header("a", "b"))`, ""},
		{"a handler's method", `ordertasks.RegisterShipOrder(worker, shop{}.ShipOrder)`, ""},
		{"a batch that mixes tasks", `_ = []backstage.Job{ordertasks.ShipOrderJob(nil), ordertasks.SendReceiptJob(nil)}`, ""},

		{"a wrong payload", `client.ChargeCard(ctx, &ordersv1.SendReceiptRequest{})`, "cannot use"},
		{"a payload by value", `client.ChargeCard(ctx, ordersv1.ChargeCardRequest{})`, "cannot use"},
		{"a wrong payload on an edge", `next.ShipOrder(&ordersv1.SendReceiptRequest{})`, "cannot use"},
		{"an edge that is not declared", `next.Sweep(nil)`, "next.Sweep undefined"},
		{"an edge of the runtime", `next.Add(nil)`, "next.Add undefined"},
		{"a task that does not exist", `client.Refund(ctx, nil)`, "client.Refund undefined"},
		{"a register option at enqueue", `client.ChargeCard(ctx, nil, backstage.Serve("x"))`, "cannot use"},
		{"a register option on an edge", `next.ShipOrder(nil, backstage.Serve("x"))`, "cannot use"},
		{"a queue on an edge", `next.ShipOrder(nil, backstage.OnQueue("x"))`, "cannot use"},
		{"an id on an edge", `next.ShipOrder(nil, backstage.WithID("x"))`, "cannot use"},
		{"an enqueue option at registration", `ordertasks.RegisterShipOrder(worker, shop{}.ShipOrder, backstage.OnQueue("x"))`, "cannot use"},
		{"the method of another task", `ordertasks.RegisterShipOrder(worker, shop{}.SendReceipt)`, "cannot use"},
		{"a handler without one of the tasks", `ordertasks.Register(worker, shop{})`, "missing method Sweep"},
		{"a client without a provider", `ordertasks.NewClient()`, "not enough arguments"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := c.snippet(test.body)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%s\ndoes not compile: %v", test.body, err)
			case test.want != "" && err == nil:
				t.Errorf("%s\ncompiles, and should not", test.body)
			case test.want != "" && !strings.Contains(err.Error(), test.want):
				t.Errorf("%s\ndoes not compile, but for another reason than %q: %v", test.body, test.want, err)
			}
		})
	}
}
