package brokers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const usage = `run [-only BROKER,…] -- COMMAND…   starts the brokers, runs the command, takes them down
run [-only BROKER,…] up            starts the brokers, prints their environment, leaves them up
run down                           takes down what "up" left up`

// recipes returns all brokers that there are.
func recipes() []recipe { return []recipe{redisRecipe(), rabbitMQRecipe(), kafkaRecipe()} }

// Tool is the program in folder run: it starts brokers for a command, or for a
// developer. What it has to tell goes to say; only the environment of "up" goes to out.
// It returns the code to exit with, which is that of the command if there is one.
func Tool(args []string, out, say io.Writer) int { return toolFor(recipes(), args, out, say) }

// toolFor is the tool, for some brokers.
func toolFor(all []recipe, args []string, out, say io.Writer) int {
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) { // by nohup, for example
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	t := tool{out: out, say: say, signals: signals, system: thisDebian(), recipes: all}
	code, err := t.do(args)
	if err != nil {
		fmt.Fprintf(say, "brokers: %v\n", err)
	}
	return code
}

type tool struct {
	out, say io.Writer
	signals  chan os.Signal
	system   debian
	recipes  []recipe
	only     []string
}

const wrongUsage = 2

func (t *tool) do(args []string) (int, error) {
	words, command := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		words, command = args[:i], args[i+1:]
	}
	if len(words) > 1 && words[0] == "-only" {
		if err := t.choose(words[1]); err != nil {
			return wrongUsage, err
		}
		words = words[2:]
	}
	switch verb := strings.Join(words, " "); {
	case verb == "" && len(command) > 0:
		return t.run(command)
	case verb == "up" && command == nil:
		return code(t.up())
	case verb == "down" && command == nil && t.only == nil:
		return code(t.down())
	}
	return wrongUsage, errors.New("usage:\n" + usage)
}

func code(err error) (int, error) {
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// choose keeps the recipes with these names, which have commas between them.
func (t *tool) choose(names string) error {
	var chosen []recipe
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(t.recipes, func(r recipe) bool { return strings.EqualFold(r.name, name) })
		if i < 0 {
			return fmt.Errorf("no broker is called %q", name)
		}
		chosen = append(chosen, t.recipes[i])
		t.only = append(t.only, strings.ToLower(name))
	}
	t.recipes = chosen
	return nil
}

// required is the value of the variable that says that brokers are there.
func (t *tool) required() string {
	if t.only == nil {
		return "1"
	}
	return strings.Join(t.only, ",")
}

// shared is a server that the tests of a run share.
type shared struct {
	recipe recipe
	server *Server
	took   time.Duration // until it was ready
}

// run starts the brokers, runs the command with their addresses, and takes them down
// again, whatever happens to the command.
func (t *tool) run(command []string) (int, error) {
	all, err := t.start(t.recipes)
	if err != nil {
		return 1, err
	}
	ended, err := t.command(command, t.environment(all))
	err = errors.Join(err, closeAll(all))
	if err != nil && ended == 0 {
		ended = 1
	}
	return ended, err
}

func (t *tool) environment(all []shared) []string {
	variables := []string{Required + "=" + t.required()}
	for _, s := range all {
		variables = append(variables, s.recipe.variable+"="+s.server.Addr())
	}
	return variables
}

// command runs a command and passes on the signals that it should have. A Ctrl-C reaches
// it twice then, which does no harm: the terminal sends it to both.
func (t *tool) command(words, variables []string) (int, error) {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, t.out, t.say
	cmd.Env = append(os.Environ(), variables...)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start the command: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-t.signals:
			_ = cmd.Process.Signal(s) // it may have ended
		case err := <-done:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitCode(exit.ProcessState), nil
			}
			return code(err)
		}
	}
}

// start starts the shared servers, all at once, and says in one line what they are. A
// signal stops it.
func (t *tool) start(recipes []recipe) ([]shared, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case s := <-t.signals:
			cancel(fmt.Errorf("stopped by a signal: %v", s))
		case <-ctx.Done():
		}
	}()
	// The signals that come later are the command's.
	defer func() {
		cancel(nil)
		<-heard
	}()
	if err := t.system.restore(); err != nil {
		return nil, err
	}
	if err := sweep(ctx); err != nil {
		// It concerns an earlier run, and must not stop this one.
		fmt.Fprintf(t.say, "brokers: what an earlier run left could not be taken down: %v\n", err)
	}
	programs, err := t.system.obtain(ctx, t.say, recipes)
	if err != nil {
		return nil, err
	}
	all, err := t.share(ctx, recipes, programs)
	if err == nil && ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), closeAll(all))
	}
	return all, err
}

func closeAll(all []shared) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.server.on.close())
	}
	return errors.Join(errs...)
}

func (t *tool) share(ctx context.Context, recipes []recipe, programs map[string]program) ([]shared, error) {
	results, errs := make([]shared, len(recipes)), make([]error, len(recipes))
	var group sync.WaitGroup
	for i, r := range recipes {
		group.Go(func() {
			began := time.Now()
			server, err := r.share(ctx, programs[r.name])
			results[i], errs[i] = shared{r, server, time.Since(began)}, err
		})
	}
	group.Wait()
	all := slices.DeleteFunc(results, func(s shared) bool { return s.server == nil })
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, closeAll(all))
	}
	var lines []string
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%s on %s from %s, up in %.1f s",
			s.recipe.name, s.server.Addr(), programs[s.recipe.name], s.took.Seconds()))
	}
	if len(lines) > 0 {
		fmt.Fprintf(t.say, "brokers: %s\n", strings.Join(lines, "; "))
	}
	return all, nil
}
