package brokers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func rabbitMQRecipe() recipe {
	return recipe{
		name: "RabbitMQ", variable: RabbitMQAddress,
		remedy:    "install RabbitMQ 3.10 or newer, so that rabbitmq-server is in the PATH",
		installed: installedRabbitMQ,
		packages:  []string{"rabbitmq-server"},
		image:     "rabbitmq:3.13-management", command: "rabbitmq-server",
		share: func(ctx context.Context, p program) (*Server, error) {
			r, err := startRabbitMQ(ctx, p, RabbitMQOptions{})
			if err != nil {
				return nil, err
			}
			return r.Server, nil
		},
	}
}

// debianRabbitMQ is where Debian has the program itself. What is in the PATH there
// becomes another user first.
const debianRabbitMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// installedRabbitMQ finds a RabbitMQ that is installed and new enough. It must come
// with epmd, by which Erlang's programs find each other.
func installedRabbitMQ(ctx context.Context) (program, error) {
	path := debianRabbitMQ
	if _, err := os.Stat(path); err != nil {
		if path, err = exec.LookPath("rabbitmq-server"); err != nil {
			return program{}, errors.New("rabbitmq-server is not in the PATH")
		}
	}
	if _, err := exec.LookPath("epmd"); err != nil {
		return program{}, errors.New("epmd, which comes with Erlang, is not in the PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(filepath.Dir(path), "rabbitmqctl"), "version").CombinedOutput()
	if err != nil {
		return program{}, fmt.Errorf("rabbitmqctl version: %w: %s", err, lastLine(string(out)))
	}
	version := lastLine(string(out))
	if !reaches(version, "3.10") {
		return program{}, fmt.Errorf("%s is version %q, and 3.10 is the oldest that will do", path, version)
	}
	return program{path: path, version: version}, nil
}

// RabbitMQOptions says what kind of RabbitMQ server a test wants. The zero value is one
// with the management API, with everything else as RabbitMQ has it but for the timeout
// after which dead-lettering is tried again.
type RabbitMQOptions struct {
	// Conf are further lines of rabbitmq.conf, such as "consumer_timeout = 60000".
	Conf []string
	// Terms are further settings of the application rabbit that rabbitmq.conf does not
	// know, as Erlang writes them: "{channel_tick_interval, 1000}".
	Terms []string
	// TLS makes the server take encrypted connections and no others, with a certificate
	// for 127.0.0.1 and localhost that is made for it alone. The management API has none.
	TLS bool
	// cookie lets the nodes of a cluster talk to each other.
	cookie string
}

// RabbitMQ is a RabbitMQ server of a test's own.
type RabbitMQ struct {
	*Server
	program program
	secure  *tls.Config
}

// TLS returns what a client needs to trust the server; nil if its connections are not
// encrypted.
func (r *RabbitMQ) TLS() *tls.Config { return r.secure.Clone() }

// Ctl runs rabbitmqctl for this server. It is an errors.ErrUnsupported where the server
// runs in a container.
func (r *RabbitMQ) Ctl(ctx context.Context, words ...string) error {
	on, ok := r.on.(*processes)
	if !ok {
		return fmt.Errorf("rabbitmqctl in a container: %w", errors.ErrUnsupported)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(r.program.path), "rabbitmqctl"), append([]string{"--quiet"}, words...)...)
	cmd.Env = os.Environ()
	for name, value := range r.spec.env(place{dir: on.dir(r.spec), bind: "127.0.0.1"}) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(words, " "), err, lastLine(string(out)))
	}
	return nil
}

// URL is where clients connect.
func (r *RabbitMQ) URL() string {
	if r.secure != nil {
		return strings.Replace(RabbitMQURL(r.Addr()), "amqp:", "amqps:", 1)
	}
	return RabbitMQURL(r.Addr())
}

// Management is the URL of the management API.
func (r *RabbitMQ) Management() string { return RabbitMQManagement(r.Addr()) }

// RabbitMQURL is what a client connects to for a server at host:port.
func RabbitMQURL(address string) string { return "amqp://guest:guest@" + address + "/" }

// RabbitMQManagement is the URL of the management API of a server at host:port: its
// port is the next one.
func RabbitMQManagement(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	return "http://guest:guest@" + net.JoinHostPort(host, strconv.Itoa(n+1))
}

// Close kills the server, and removes its folder. Closing twice is fine. Tests need not
// call it.
func (r *RabbitMQ) Close() error { return r.on.close() }

// StartRabbitMQ starts a RabbitMQ server for a program that is no test, such as one
// that measures. The program closes it; should it die before, the server ends as well.
// It does not install anything: a *MissingError says what to do.
func StartRabbitMQ(ctx context.Context, opts RabbitMQOptions) (*RabbitMQ, error) {
	p, err := rabbitMQRecipe().find(ctx)
	if err != nil {
		return nil, err
	}
	return startRabbitMQ(ctx, p, opts)
}

// startRabbitMQ starts a server in a site of its own, with an epmd of its own: that of
// the system knows, and is known to, everybody.
func startRabbitMQ(ctx context.Context, p program, opts RabbitMQOptions) (*RabbitMQ, error) {
	s, on, err := p.open(3)
	if err != nil {
		return nil, err
	}
	var c *certificate
	if opts.TLS {
		if c, err = newCertificate(); err != nil {
			return nil, errors.Join(err, on.close())
		}
	}
	r := &RabbitMQ{Server: &Server{spec: rabbitMQSpec(p, s, 0, opts, c), on: on}, program: p}
	if c != nil {
		r.secure = c.client
	}
	if p.image == "" { // in a container the server starts its own
		err = (&Server{spec: epmdSpec(s.port(2)), on: on}).start(ctx)
	}
	if err == nil {
		err = r.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, on.close())
	}
	return r, nil
}

// epmdSpec is an epmd in the foreground, where it can be taken down.
func epmdSpec(port int) *spec {
	return &spec{
		name: "epmd", port: port,
		command: func(at place) []string {
			return []string{"epmd", "-port", strconv.Itoa(port), "-address", at.bind, "-relaxed_command_check"}
		},
		ready: func(ctx context.Context) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", local(port))
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}
}

// rabbitMQNode is the name of the node on a port.
func rabbitMQNode(port int) string { return fmt.Sprintf("backstage%d@localhost", port) }

// rabbitMQSpec is a node that listens on a port of a site, its first one but in a cluster,
// with the management API on the next. With a certificate its connections are encrypted.
func rabbitMQSpec(p program, s *site, first int, opts RabbitMQOptions, c *certificate) *spec {
	port := s.port(first)
	bind := "127.0.0.1"
	if p.image != "" {
		bind = "0.0.0.0"
	}
	listener := fmt.Sprintf("listeners.tcp.1 = %s:%d", bind, port)
	files := make(map[string]string)
	var secure *tls.Config
	if c != nil {
		listener = fmt.Sprintf("listeners.tcp = none\nlisteners.ssl.1 = %s:%d\nssl_options.certfile = rabbitmq.crt\nssl_options.keyfile = rabbitmq.key", bind, port)
		files["rabbitmq.crt"], files["rabbitmq.key"] = c.certificate, c.key
		secure = c.client
	}
	conf := append([]string{
		listener,
		"management.tcp.ip = " + bind,
		fmt.Sprintf("management.tcp.port = %d", s.port(first+1)),
		"loopback_users.guest = false",
		"log.console = true", "log.console.level = warning", "log.file = false",
	}, opts.Conf...)
	terms := append([]string{"{dead_letter_worker_publisher_confirm_timeout, 2000}"}, opts.Terms...)
	files["rabbitmq.conf"] = strings.Join(conf, "\n") + "\n"
	files["advanced.config"] = "[{rabbit, [" + strings.Join(terms, ", ") + "]}].\n"
	files["enabled_plugins"] = "[rabbitmq_management].\n"
	return &spec{
		name: rabbitMQName(first), port: port, files: files,
		command: func(place) []string { return []string{p.path} },
		env: func(at place) map[string]string {
			env := map[string]string{
				"HOME":                          at.dir,
				"RABBITMQ_NODENAME":             rabbitMQNode(port),
				"RABBITMQ_NODE_IP_ADDRESS":      at.bind,
				"RABBITMQ_NODE_PORT":            strconv.Itoa(port),
				"RABBITMQ_DIST_PORT":            strconv.Itoa(port + beside),
				"RABBITMQ_MNESIA_BASE":          at.dir + "/mnesia",
				"RABBITMQ_LOG_BASE":             at.dir + "/log",
				"RABBITMQ_PID_FILE":             at.dir + "/pid",
				"RABBITMQ_CONFIG_FILE":          at.dir + "/rabbitmq.conf",
				"RABBITMQ_ADVANCED_CONFIG_FILE": at.dir + "/advanced.config",
				"RABBITMQ_ENABLED_PLUGINS_FILE": at.dir + "/enabled_plugins",
			}
			if p.image == "" {
				env["ERL_EPMD_PORT"] = strconv.Itoa(s.port(2))
				env["ERL_EPMD_ADDRESS"] = at.bind
				env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] = "-kernel inet_dist_use_interface {127,0,0,1}"
			}
			if opts.cookie != "" {
				env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] += " -setcookie " + opts.cookie
				env["RABBITMQ_CTL_ERL_ARGS"] = "-setcookie " + opts.cookie
			}
			return env
		},
		ready: func(ctx context.Context) error { return greets(ctx, local(port), secure) },
	}
}

// rabbitMQName tells the nodes of a site apart.
func rabbitMQName(first int) string {
	if first == 0 {
		return "rabbitmq"
	}
	return fmt.Sprintf("rabbitmq-%d", first)
}

// greets returns nil if a broker at an address answers the first words of AMQP 0.9.1
// with a frame, and not with another version or nothing. With a configuration of TLS the
// words are encrypted.
func greets(ctx context.Context, address string, secure *tls.Config) error {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = new(net.Dialer)
	if secure != nil {
		dialer = &tls.Dialer{Config: secure}
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return err
	}
	const method = 1
	var first [1]byte
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return err
	}
	if first[0] != method {
		return fmt.Errorf("it answers with %q", first)
	}
	return nil
}

// SharedRabbitMQ returns the host:port of the RabbitMQ server that all tests of this run
// share; a test works under a prefix of its own there, and leaves others' alone. It
// skips the test if brokers are not required, and fails it if the server does not
// answer.
func SharedRabbitMQ(t testing.TB) string {
	t.Helper()
	required(t, rabbitMQRecipe())
	address := os.Getenv(RabbitMQAddress)
	if address == "" {
		t.Fatalf("%s is set and %s is not: run `make test`, or `eval \"$(make -s brokers)\"` first", Required, RabbitMQAddress)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := greets(ctx, address, nil); err != nil {
		t.Fatalf("%s=%s does not answer (%v): `eval \"$(make -s brokers)\"` starts it again", RabbitMQAddress, address, err)
	}
	return address
}

// RequireRabbitMQ starts a RabbitMQ server for this test alone, and takes it down when
// the test ends. It skips the test if brokers are not required, and fails it if there
// is no server to be had.
func RequireRabbitMQ(t testing.TB, opts RabbitMQOptions) *RabbitMQ {
	t.Helper()
	p := requireProgram(t, rabbitMQRecipe())
	r, err := startRabbitMQ(t.Context(), p, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s on port %d said:\n%s", r.spec.name, r.spec.port, r.Log())
		}
		if err := r.Close(); err != nil {
			t.Errorf("take the broker down: %v", err)
		}
	})
	return r
}
