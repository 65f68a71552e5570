package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/codegen/compile"
)

func TestAnInterruptedRunWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "go.mod", "module example.com/shop\n")
	put(t, dir, "proto/shop/v1/shop_tasks.proto", schemaWith([][]string{{"", "queue", `"mail"`}}))
	before := listing(t, dir)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))

	var stdout, stderr bytes.Buffer
	code := program().Run(ctx, []string{"generate", "-C", dir}, nil, &stdout, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "interrupt signal received: no Go is written") {
		t.Errorf("exit code %d, %q on standard error", code, stderr.String())
	}

	project, err := compile.Load(t.Context(), compile.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&generation{}).write(ctx, project); err == nil {
		t.Error("a run that was interrupted when all was generated wrote it")
	}
	if after := listing(t, dir); after != before {
		t.Errorf("files are\n%s", after)
	}
}
