//go:build unix

package brokers

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// watching reads lines until its input ends, which is when its owner has died, since
// nobody else has the other end, and then takes the site down. A line has the numbers of
// all servers that run, each the leader of its group; the last one counts. A site of
// which something cannot be killed stays for the next run to look at. (Not every shell's
// kill knows "--".)
const watching = `
trap '' HUP INT QUIT TERM
while read -r line; do pids=$line; done
for pid in $pids; do
	kill -9 "-$pid" || ! kill -0 "-$pid" || exit
done
[ ! -r "$1/` + composeFile + `" ] || docker compose --file "$1/` + composeFile + `" down --volumes --timeout 0 || exit
rm -rf -- "$1"
rmdir -- "${1%/*}"
`

// watcher is a process that takes a site down when its owner has died.
type watcher struct {
	cmd  *exec.Cmd
	life *os.File // ends when this process ends, however it ends
}

func watch(dir string) (*watcher, error) {
	end, life, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watch over %s: %w", dir, err)
	}
	defer end.Close()
	cmd := exec.Command("/bin/sh", "-c", watching, "backstage-brokers", dir)
	cmd.Dir, cmd.Stdin = "/", end
	apart(cmd)
	if err := cmd.Start(); err != nil {
		_ = life.Close()
		return nil, fmt.Errorf("watch over %s: %w", dir, err)
	}
	return &watcher{cmd, life}, nil
}

// tell says which servers run. That they are on record in the site's folder is not
// enough: somebody may remove that.
func (w *watcher) tell(servers []identity) error {
	var line strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&line, "%d ", s.pid)
	}
	if _, err := fmt.Fprintln(w.life, line.String()); err != nil {
		return fmt.Errorf("nobody watches any more: %w", err)
	}
	return nil
}

// dismiss ends the watch without any deed. It is called before the folder is removed:
// the watcher must not come late and remove what others have there by then.
func (w *watcher) dismiss() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	_ = w.life.Close()
}
