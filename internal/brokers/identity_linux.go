package brokers

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// identityOf reads what the kernel says of a process.
func identityOf(pid int) identity {
	i := identity{pid: pid, boot: "-", space: "-"}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		i.boot = strings.TrimSpace(string(id))
	}
	if space, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		i.space = space
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return i
	}
	// The name of the program stands in brackets and may have any character in it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, start = 0, 19 // the third and the twenty-second of all
	if len(fields) > start && !bytes.ContainsAny(fields[state], "ZX") {
		i.start = string(fields[start])
	}
	return i
}
