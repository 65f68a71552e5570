package kafka

import (
	"cmp"
	"maps"
	"slices"
)

// claim is what one member brings to a new generation of the group.
type claim struct {
	member string
	topics []string
	// owned are the partitions that it has, and whose jobs it may be running.
	owned map[string][]int
	// generation is the last one in which they were given to it.
	generation int
}

// share is what a member has in a generation.
type share struct {
	owned map[string][]int
	// give says how many partitions of a topic others should have instead. The member
	// chooses which, and gives them up in a later generation, when nothing runs in them:
	// so no run is cut off because others came.
	give map[string]int
}

// assignment is a generation while it is worked out.
type assignment struct {
	shares  map[string]*share
	readers map[string][]string       // of a topic: its members, sorted
	loads   map[string]map[string]int // of a topic: how many partitions a member is to have
	totals  map[string]int            // of all topics
}

// assign says who has what in a generation: each keeps what it has, what nobody has
// goes to those who have least, and who has more than others is asked to give.
// partitions are the topics with their numbers of partitions. The answer depends on
// nothing else, not on the order of claims.
func assign(claims []claim, partitions map[string]int) map[string]*share {
	claims = slices.Clone(claims)
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.generation, a.generation), cmp.Compare(a.member, b.member))
	})
	a := &assignment{shares: make(map[string]*share), readers: make(map[string][]string),
		loads: make(map[string]map[string]int), totals: make(map[string]int)}
	for _, c := range claims {
		a.shares[c.member] = &share{owned: make(map[string][]int), give: make(map[string]int)}
		for _, topic := range c.topics {
			a.readers[topic] = append(a.readers[topic], c.member)
		}
	}
	topics := slices.Sorted(maps.Keys(a.readers))
	free := make(map[string][]int)
	for _, topic := range topics {
		slices.Sort(a.readers[topic])
		a.loads[topic] = make(map[string]int)
		free[topic] = a.keep(claims, topic, partitions[topic])
	}
	for _, topic := range topics {
		for _, number := range free[topic] {
			a.have(a.least(topic), topic, number)
		}
	}
	for a.ask(topics) {
	}
	for _, s := range a.shares {
		for _, numbers := range s.owned {
			slices.Sort(numbers)
		}
	}
	return a.shares
}

// keep leaves partitions with those who have them, and returns those that nobody has.
// Where two say that they have one, the claim of the later generation holds: the other
// member was thought dead in between.
func (a *assignment) keep(claims []claim, topic string, partitions int) (free []int) {
	taken := make(map[int]bool)
	for _, c := range claims {
		if !slices.Contains(a.readers[topic], c.member) {
			continue
		}
		for _, number := range c.owned[topic] {
			if number < partitions && !taken[number] {
				taken[number] = true
				a.have(c.member, topic, number)
			}
		}
	}
	for number := range partitions {
		if !taken[number] {
			free = append(free, number)
		}
	}
	return free
}

func (a *assignment) have(member, topic string, number int) {
	s := a.shares[member]
	s.owned[topic] = append(s.owned[topic], number)
	a.loads[topic][member]++
	a.totals[member]++
}

// least is the member that has the fewest partitions of a topic, or else of all.
func (a *assignment) least(topic string) string {
	return slices.MinFunc(a.readers[topic], func(m, n string) int { return a.compare(topic, m, n) })
}

func (a *assignment) compare(topic, m, n string) int {
	load := a.loads[topic]
	return cmp.Or(cmp.Compare(load[m], load[n]), cmp.Compare(a.totals[m], a.totals[n]), cmp.Compare(m, n))
}

// ask asks one member to give one partition, and reports whether it did. A partition
// moves if that evens out its topic, or, without making the topic less even, all topics
// together.
func (a *assignment) ask(topics []string) bool {
	for _, topic := range topics {
		least := a.least(topic)
		most := slices.MaxFunc(a.readers[topic], func(m, n string) int { return a.compare(topic, m, n) })
		load := a.loads[topic]
		apart := load[most] - load[least]
		if apart >= 2 || apart == 1 && a.totals[most]-a.totals[least] >= 2 {
			load[most]--
			a.totals[most]--
			load[least]++
			a.totals[least]++
			a.shares[most].give[topic]++
			return true
		}
	}
	return false
}
