package main

import (
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTheProgramTakesTheCommandsOfTheComposeFile stands in for docker compose,
// which tests do not need.
func TestTheProgramTakesTheCommandsOfTheComposeFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image   string
			Command yaml.Node
			Volumes []string
		}
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, service := range file.Services {
		if service.Image != "backstage-shop" {
			continue
		}
		names = append(names, name)
		var args []string
		if err := service.Command.Decode(&args); err != nil {
			t.Errorf("%s: command: %v", name, err)
		}
		if out, err := shopCommand(t, append(args, "-help")...); err != nil {
			t.Errorf("%s: shop %q: %v\n%s", name, args, err, out)
		}
		if !slices.Contains(service.Volumes, "ledger:/data") {
			t.Errorf("%s: volumes are %q, want the ledger that all share", name, service.Volumes)
		}
	}
	slices.Sort(names)
	if want := []string{"producer", "report", "worker-1", "worker-2"}; !slices.Equal(names, want) {
		t.Errorf("the shop's services are %q, want %q", names, want)
	}
}
