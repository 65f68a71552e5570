package kafka

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func owns(member string, generation int, topics []string, owned ...int) claim {
	return claim{member: member, topics: topics, generation: generation, owned: map[string][]int{topics[0]: owned}}
}

func TestAssign(t *testing.T) {
	t.Parallel()
	q := []string{"q"}
	for name, c := range map[string]struct {
		claims     []claim
		partitions map[string]int
		owned      map[string]string
		give       map[string]string
	}{
		"one member has all": {
			claims:     []claim{owns("a", 0, q)},
			partitions: map[string]int{"q": 3},
			owned:      map[string]string{"a": "map[q:[0 1 2]]"},
		},
		"what nobody has goes to those who have least": {
			claims:     []claim{owns("a", 1, q, 0, 3), owns("b", 0, q)},
			partitions: map[string]int{"q": 4},
			owned:      map[string]string{"a": "map[q:[0 3]]", "b": "map[q:[1 2]]"},
		},
		"who comes later gets nothing that is another's, which is asked to give": {
			claims:     []claim{owns("a", 1, q, 0, 1, 2, 3), owns("b", 0, q)},
			partitions: map[string]int{"q": 4},
			owned:      map[string]string{"a": "map[q:[0 1 2 3]]", "b": "map[]"},
			give:       map[string]string{"a": "map[q:2]"},
		},
		"more members than partitions": {
			claims:     []claim{owns("a", 1, q, 0), owns("b", 1, q)},
			partitions: map[string]int{"q": 1},
			owned:      map[string]string{"a": "map[q:[0]]", "b": "map[]"},
		},
		"the later claim holds": {
			claims:     []claim{owns("a", 3, q, 0, 1), owns("b", 7, q, 1)},
			partitions: map[string]int{"q": 2},
			owned:      map[string]string{"a": "map[q:[0]]", "b": "map[q:[1]]"},
		},
		"a topic is for those who read it": {
			claims:     []claim{owns("a", 1, []string{"q", "r"}), owns("b", 1, q)},
			partitions: map[string]int{"q": 2, "r": 2},
			owned:      map[string]string{"a": "map[q:[0] r:[0 1]]", "b": "map[q:[1]]"},
		},
		"topics with one partition are evened out together": {
			claims:     []claim{{member: "a", topics: []string{"q", "r", "s"}, owned: map[string][]int{"q": {0}, "r": {0}, "s": {0}}}, {member: "b", topics: []string{"q", "r", "s"}}},
			partitions: map[string]int{"q": 1, "r": 1, "s": 1},
			owned:      map[string]string{"a": "map[q:[0] r:[0] s:[0]]", "b": "map[]"},
			give:       map[string]string{"a": "map[q:1]"},
		},
		"a partition that is gone": {
			claims:     []claim{owns("a", 1, q, 0, 5)},
			partitions: map[string]int{"q": 1},
			owned:      map[string]string{"a": "map[q:[0]]"},
		},
		"a topic that is gone": {
			claims:     []claim{owns("a", 1, q, 0)},
			partitions: map[string]int{"q": 0},
			owned:      map[string]string{"a": "map[]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owned, give := make(map[string]string), make(map[string]string)
			for member, s := range assign(c.claims, c.partitions) {
				owned[member] = fmt.Sprint(s.owned)
				if len(s.give) > 0 {
					give[member] = fmt.Sprint(s.give)
				}
			}
			if diff := cmp.Diff(c.owned, owned); diff != "" {
				t.Errorf("who has what (-want +got):\n%s", diff)
			}
			if c.give == nil {
				c.give = make(map[string]string)
			}
			if diff := cmp.Diff(c.give, give); diff != "" {
				t.Errorf("who is to give (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAssignSettles lets members come, go and give at random, and checks that each
// partition always has one owner, who keeps it while he lives, and that all is even in
// the end.
func TestAssignSettles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		partitions := map[string]int{"q": 1 + random.IntN(9), "r": 1 + random.IntN(3), "s": 1}
		topics := slices.Sorted(maps.Keys(partitions))
		members := make(map[string]*claim)
		var shares map[string]*share
		generation := 0
		next := func() {
			generation++
			var claims []claim
			for _, c := range members {
				claims = append(claims, *c)
			}
			shares = assign(claims, partitions)
			seen := make(map[string]string)
			for member, s := range shares {
				for topic, numbers := range s.owned {
					for _, n := range numbers {
						at := fmt.Sprint(topic, n)
						if seen[at] != "" {
							t.Fatalf("seed %d: %s and %s both have %s", seed, seen[at], member, at)
						}
						seen[at] = member
					}
				}
			}
			for member, c := range members {
				for topic, numbers := range c.owned {
					for _, n := range numbers {
						if seen[fmt.Sprint(topic, n)] != member {
							t.Fatalf("seed %d: %s lost %s %d, and lives", seed, member, topic, n)
						}
					}
				}
				c.owned, c.generation = shares[member].owned, generation
			}
		}
		for range 20 {
			if name := fmt.Sprint("m", random.IntN(6)); members[name] != nil && random.IntN(3) == 0 && len(members) > 1 {
				delete(members, name)
			} else if members[name] == nil {
				members[name] = &claim{member: name, topics: topics}
			}
			next()
		}
		for rounds := 0; gives(members, shares); rounds++ {
			if rounds > 20 {
				t.Fatalf("seed %d: after %d generations members are still asked to give", seed, rounds)
			}
			next()
		}
		least, most := 1<<30, 0
		for _, c := range members {
			least, most = min(least, len(c.owned["q"])), max(most, len(c.owned["q"]))
		}
		if most-least > 1 {
			t.Errorf("seed %d: one member has %d partitions of a topic and another %d", seed, most, least)
		}
	}
}

// gives lets all members give what they are asked for, and reports whether any was.
func gives(members map[string]*claim, shares map[string]*share) (any bool) {
	for member, s := range shares {
		for topic, n := range s.give {
			for range n {
				if numbers := members[member].owned[topic]; len(numbers) > 0 {
					members[member].owned[topic] = numbers[1:]
					any = true
				}
			}
		}
	}
	return any
}
