// Package providertest is the suite that every provider passes. It holds a
// provider to the sentences of package provider, one named check for each, and
// measures the facts that the provider claims: one that claims more than it does
// fails.
//
//	func TestMain(m *testing.M) { providertest.Main(m, open) }
//
//	func TestProvider(t *testing.T) {
//		providertest.Run(t, func(t *testing.T) providertest.Harness {
//			path := filepath.Join(t.TempDir(), "jobs.db")
//			return providertest.Harness{
//				Open:    func() (*provider.Provider, error) { return open(path) },
//				Address: path,
//				Lease:   time.Second,
//			}
//		})
//	}
//
// Every check runs on a storage of its own, in two rounds: with the provider as
// it is, and with lent Delays and Claims. A single one runs by its name:
//
//	go test -run 'TestProvider/own/lease/takeover'
//
// What a provider does not have is skipped, with the reason. At the end the suite
// logs the table of facts, each with the checks that measured it (go test -v).
//
// Where the storage outlives its process, worker processes are killed with
// SIGKILL, or stopped for longer than their lease, at named points. Each point is
// tried a few times. With BACKSTAGE_SOAK in the environment it is tried 100
// times, or as often as its number says:
//
//	BACKSTAGE_SOAK=1 go test -run 'TestProvider/.*/kill' -timeout 2h
package providertest
