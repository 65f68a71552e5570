package compile

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls do with 0 to n-1, as many at once as there are processors.
func parallel(n int, do func(i int)) {
	var workers sync.WaitGroup
	var taken atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := taken.Add(1) - 1; i < int64(n); i = taken.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	workers.Wait()
}
