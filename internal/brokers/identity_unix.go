//go:build unix && !linux

package brokers

import (
	"os/exec"
	"strconv"
	"strings"
)

// identityOf asks ps, which knows the second in which a process began.
func identityOf(pid int) identity {
	i := identity{pid: pid, boot: "-", space: "-"}
	out, err := exec.Command("/bin/ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return i
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !strings.HasPrefix(state, "Z") {
		i.start = strings.Join(strings.Fields(start), " ")
	}
	return i
}
