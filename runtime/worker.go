package backstage

// Worker runs jobs.
type Worker struct {
}

func (w *Worker) register(r *registered) {}
