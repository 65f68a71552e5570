//go:build unix

package brokers

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maven stands for mvn: it puts a jar where it is told to, or fails as Maven does.
const maven = `#!/bin/sh
echo "mvn $*" >>"$HERE/calls"
for word; do
	case "$word" in
	-DoutputDirectory=*) folder="${word#*=}" ;;
	esac
done
[ -z "$OFFLINE" ] || { echo "[INFO] Scanning"; echo "[ERROR] repo.maven.apache.org: Unknown host"; echo "[ERROR] [Help 1]"; exit 1; }
mkdir -p "$folder" && : >"$folder/kafka.jar"
`

// pretendMaven makes a PATH with stubs of java and mvn, and a folder for caches.
func pretendMaven(t *testing.T, version string) (here, jars string) {
	t.Helper()
	here = t.TempDir()
	for name, content := range map[string]string{
		"java": "#!/bin/sh\necho 'Picked up JAVA_TOOL_OPTIONS: -Xmx8g'\necho 'openjdk " + version + " 2025-04-15'\n",
		"mvn":  maven,
	} {
		if err := os.WriteFile(filepath.Join(here, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", here+string(os.PathListSeparator)+"/bin:/usr/bin")
	t.Setenv("HERE", here)
	t.Setenv("HOME", here)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(here, "cache"))
	jars, err := kafkaJars()
	if err != nil {
		t.Fatal(err)
	}
	return here, jars
}

func TestKafkaIsDownloadedOnce(t *testing.T) {
	here, jars := pretendMaven(t, "17.0.15")
	for round, want := range []string{"brokers: downloading Kafka " + kafkaVersion + " from Maven Central to " + jars + ", once\n", ""} {
		var said bytes.Buffer
		found, err := debian{}.obtain(t.Context(), &said, []recipe{kafkaRecipe()})
		if err != nil || found["Kafka"].path != jars || said.String() != want {
			t.Errorf("round %d: found %v, %v, and said %q; want %s, and %q", round, found, err, said.String(), jars, want)
		}
	}
	if calls := read(t, filepath.Join(here, "calls")); strings.Count(calls, "mvn") != 1 {
		t.Errorf("these were called: %q, want Maven once", calls)
	}
	left, err := os.ReadDir(filepath.Dir(jars))
	if err != nil || len(left) != 1 {
		t.Errorf("beside the jars is left %v, %v", left, err)
	}
}

func TestDownloadThatFailsLeavesNothing(t *testing.T) {
	_, jars := pretendMaven(t, "21")
	t.Setenv("OFFLINE", "1")
	_, err := debian{}.obtain(t.Context(), io.Discard, []recipe{kafkaRecipe()})
	for _, want := range []string{"Unknown host", "neither Debian nor Ubuntu", "install Java 17 or newer and Maven"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(jars)); err != nil || len(left) > 0 {
		t.Errorf("of a download that failed is left %v, %v", left, err)
	}
}

func TestJavaThatIsTooOldIsNotUsed(t *testing.T) {
	pretendMaven(t, "11.0.2")
	_, err := debian{}.obtain(t.Context(), io.Discard, []recipe{kafkaRecipe()})
	if err == nil || !strings.Contains(err.Error(), `version "11.0.2", and 17 is the oldest`) {
		t.Errorf("%v; want that the installed one is too old", err)
	}
}
