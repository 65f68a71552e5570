package brokers

import (
	"os"
	"path/filepath"
	"testing"
)

// asTool makes the test binary the tool.
const asTool = "BACKSTAGE_TEST_TOOL"

func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "docker":
		os.Exit(pretendDocker(os.Args[1:]))
	case os.Getenv(asTool) != "":
		os.Exit(toolFor([]recipe{redisRecipe()}, os.Args[1:], os.Stdout, os.Stderr)) // the quickest one to start
	}
	os.Exit(m.Run())
}
