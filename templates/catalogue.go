package templates

import (
	"io"
	"strings"
	"text/tabwriter"
)

// Catalogue is every task of a set of schemas, for people who look one up.
type Catalogue struct {
	Services []Service `json:"services"`
}

// Service is one task service.
type Service struct {
	// Name is its full name: "shop.orders.v1.OrderTasks".
	Name string `json:"name"`
	// Place is where it is declared: file:line:column.
	Place string `json:"place"`
	// Comment is what stands above it in the schema.
	Comment    string `json:"comment"`
	Owner      string `json:"owner"`
	Deprecated bool   `json:"deprecated"`
	// Package is the import path of the generated Go package.
	Package string `json:"package"`
	Tasks   []Task `json:"tasks"`
}

// Task is one task, with what holds for its jobs as a schema would write it.
type Task struct {
	// Name is the name on the wire.
	Name string `json:"name"`
	// RPC is the full name of its rpc, which is the name on the wire too unless
	// the schema sets another.
	RPC string `json:"rpc"`
	// Short is the rpc's own name: "ChargeCard".
	Short   string   `json:"short"`
	Aliases []string `json:"aliases"`
	// Payload is the full name of its message.
	Payload string `json:"payload"`
	Place   string `json:"place"`
	Comment string `json:"comment"`
	// Options is what holds, by the option's name: "timeout": "30s". Options
	// that are not in force are left out.
	Options map[string]Option `json:"options"`
	// Dedupe and OrderingKey are key templates, "" for none.
	Dedupe      string `json:"dedupe"`
	OrderingKey string `json:"ordering_key"`
	// Next are the full names of the tasks that may follow.
	Next       []string `json:"next"`
	Owner      string   `json:"owner"`
	Deprecated bool     `json:"deprecated"`
	// Make and Run say in words what enqueueing does and how a worker runs it.
	Make string `json:"make"`
	Run  string `json:"run"`
}

// Option is a value in force.
type Option struct {
	Value string `json:"value"`
	// From is where it was decided: "task", "service" or "built-in".
	From string `json:"from"`
}

// Text writes the catalogue for a terminal.
func (c Catalogue) Text(w io.Writer) error {
	return render(w, "catalogue.txt.tmpl", c)
}

// Markdown writes the catalogue as a page.
func (c Catalogue) Markdown(w io.Writer) error {
	return render(w, "catalogue.md.tmpl", c)
}

// Table lines the tasks up below each other.
func (s Service) Table() (string, error) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, row := range s.rows("-") {
		line := strings.Join(row, "\t")
		if i == 0 {
			line = strings.ToUpper(line)
		}
		if _, err := io.WriteString(w, "  "+line+"\n"); err != nil {
			return "", err
		}
	}
	err := w.Flush()
	return trimLines(b.String()), err
}

// MarkdownTable is the same table for a page.
func (s Service) MarkdownTable() string {
	var b strings.Builder
	for i, row := range s.rows("–") {
		for j := range row {
			row[j] = plain(row[j])
		}
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	return b.String()
}

// rows are the titles and the tasks, without the columns in which no task has
// anything; none stands where one task has nothing.
func (s Service) rows(none string) [][]string {
	columns := []column{
		{"task", func(t Task) string { return t.Short + mark(t.Deprecated, " (deprecated)") }},
		{"queue", func(t Task) string { return t.Options["queue"].Value }},
		{"runs", Task.Runs},
		{"waits", Task.Waits},
		{"one job per", Task.OneJobPer},
		{"in order by", func(t Task) string { return t.OrderingKey }},
		{"then", func(t Task) string { return strings.Join(s.Local(t.Next), ", ") }},
		{"also called", Task.otherNames},
		{"owner", func(t Task) string { return oneLine(t.Owner) }},
	}
	rows := make([][]string, len(s.Tasks)+1)
	for _, c := range columns {
		c.addTo(rows, s.Tasks, none)
	}
	return rows
}

// Local shortens the names of the service's own tasks.
func (s Service) Local(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimPrefix(name, s.Name+".")
	}
	return out
}

type column struct {
	title string
	cell  func(Task) string
}

func (c column) addTo(rows [][]string, tasks []Task, none string) {
	cells, empty := make([]string, len(tasks)), true
	for i, t := range tasks {
		cells[i] = c.cell(t)
		empty = empty && cells[i] == ""
	}
	if empty {
		return
	}
	rows[0] = append(rows[0], c.title)
	for i, cell := range cells {
		if cell == "" {
			cell = none
		}
		rows[i+1] = append(rows[i+1], cell)
	}
}

// Runs says how often, how long and with which wait a job is tried.
func (t Task) Runs() string {
	o := t.Options
	if o["max_attempts"].Value == "1" {
		return "once, " + o["timeout"].Value
	}
	runs := o["max_attempts"].Value + " times, " + o["timeout"].Value + " each, backoff " + o["backoff"].Value
	if o["max_age"].From != "built-in" {
		runs += ", no retry after " + o["max_age"].Value
	}
	return runs
}

// Waits says how long a job waits, and for how long it may.
func (t Task) Waits() string {
	var words []string
	if delay, ok := t.Options["delay"]; ok {
		words = append(words, delay.Value)
	}
	if expires, ok := t.Options["expires"]; ok {
		words = append(words, "expires "+expires.Value+" after it was due")
	}
	return strings.Join(words, ", ")
}

// OneJobPer says what makes two jobs one, and for how long.
func (t Task) OneJobPer() string {
	if t.Dedupe == "" {
		return ""
	}
	if window := t.Options["dedupe_for"].Value; window != "done" {
		return t.Dedupe + " for " + window
	}
	return t.Dedupe + " until done"
}

// otherNames are the names on the wire that are not the rpc's.
func (t Task) otherNames() string {
	names := t.Aliases
	if t.Name != t.RPC {
		names = append([]string{t.Name}, names...)
	}
	return strings.Join(names, ", ")
}

func mark(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

// trimLines takes white space off the ends of lines, where the last column is
// padded.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
