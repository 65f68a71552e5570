//go:build unix

package brokers

import (
	"fmt"
	"os"
	"os/exec"
)

// watching waits until its input ends, which is when its owner has died, since nobody
// else has the other end, and then takes the site down. What is read are the numbers of
// running servers, each the leader of its group. A site of which something cannot be
// killed stays for the next run to look at. (Not every shell's kill knows "--".)
const watching = `
trap '' HUP INT QUIT TERM
while read -r _; do :; done
if [ -r "$1/` + serversFile + `" ]; then
	while read -r pid _; do
		kill -9 "-$pid" || ! kill -0 "-$pid" || exit
	done <"$1/` + serversFile + `"
fi
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
