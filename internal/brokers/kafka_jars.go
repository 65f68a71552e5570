package brokers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// kafkaVersion is the release that is downloaded, and that of the image.
const kafkaVersion = "4.3.1"

// kafkaJarsInImage is where the image has what Maven downloads.
const kafkaJarsInImage = "/opt/kafka/libs"

// kafkaProject tells Maven what to download. Kafka itself does not ask for anything that
// writes its log; without it a broker says nothing.
const kafkaProject = `<project xmlns="http://maven.apache.org/POM/4.0.0">
	<modelVersion>4.0.0</modelVersion>
	<groupId>backstage</groupId>
	<artifactId>kafka</artifactId>
	<version>1</version>
	<packaging>pom</packaging>
	<dependencies>
		<dependency>
			<groupId>org.apache.kafka</groupId>
			<artifactId>kafka_2.13</artifactId>
			<version>` + kafkaVersion + `</version>
		</dependency>
		<dependency>
			<groupId>org.apache.logging.log4j</groupId>
			<artifactId>log4j-slf4j-impl</artifactId>
			<version>2.25.1</version>
		</dependency>
	</dependencies>
</project>
`

// downloading is how long Maven may take.
const downloading = 10 * time.Minute

// kafkaJars is the folder of the jars, which stays for later runs.
func kafkaJars() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for Kafka's jars: %w", err)
	}
	return filepath.Join(cache, "backstage", "kafka-"+kafkaVersion), nil
}

// installedKafka finds a Java that is new enough, and the jars.
func installedKafka(ctx context.Context) (program, error) {
	path, err := exec.LookPath("java")
	if err != nil {
		return program{}, errors.New("java is not in the PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return program{}, fmt.Errorf("%s --version: %w: %s", path, err, lastLine(string(out)))
	}
	var version string
	if found := regexp.MustCompile(`(?m)^\w+ (\d+(\.\d+)*)`).FindSubmatch(out); found != nil {
		version = string(found[1])
	}
	if !reaches(version, "17") {
		return program{}, fmt.Errorf("%s is version %q, and 17 is the oldest that will do", path, version)
	}
	jars, err := kafkaJars()
	if err != nil {
		return program{}, err
	}
	if _, err := os.Stat(jars); err != nil {
		return program{}, fmt.Errorf("there are no jars of Kafka (%w)", err)
	}
	return program{path: jars, version: kafkaVersion}, nil
}

// downloadKafka gets the jars from Maven Central, and says so before. Either all of them
// are in the folder afterwards, or it is not there.
func downloadKafka(ctx context.Context, say io.Writer) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("mvn is not in the PATH")
	}
	jars, err := kafkaJars()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(jars), 0o755); err != nil {
		return fmt.Errorf("download Kafka: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(jars), "download-")
	if err != nil {
		return fmt.Errorf("download Kafka: %w", err)
	}
	defer os.RemoveAll(dir)
	project, some := filepath.Join(dir, "pom.xml"), filepath.Join(dir, "jars")
	if err := os.WriteFile(project, []byte(kafkaProject), 0o600); err != nil {
		return fmt.Errorf("download Kafka: %w", err)
	}
	fmt.Fprintf(say, "brokers: downloading Kafka %s from Maven Central to %s, once\n", kafkaVersion, jars)
	ctx, cancel := context.WithTimeout(ctx, downloading)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "--quiet", "--batch-mode", "--file", project,
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+some)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("download Kafka: mvn: %w: %s", err, firstError(string(out)))
	}
	// Another run may have been quicker.
	if err := os.Rename(some, jars); err != nil && !isFolder(jars) {
		return fmt.Errorf("download Kafka: %w", err)
	}
	return nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// firstError is the line on which Maven says what is wrong; advice and addresses follow.
func firstError(said string) string {
	for line := range strings.Lines(said) {
		if text, ok := strings.CutPrefix(line, "[ERROR] "); ok {
			return strings.TrimSpace(text)
		}
	}
	return lastLine(said)
}
