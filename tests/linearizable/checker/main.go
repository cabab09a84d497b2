// Decides whether a history of concurrent S3 requests is linearizable, key by key.
//
//	checker [-limit 60s] [-out DIR] HISTORY
//
// Prints a line for each key. The exit status is 0 if every key is linearizable, and 1 if a key is
// not, if a key could not be decided in the time limit, or if an answer is wrong in every state.
// For a key that is not linearizable, the smallest violation that was found is written to DIR:
// violation.txt, and violation.html by porcupine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const wrongMax = 20

func main() {
	limit := flag.Duration("limit", time.Minute, "time for each key")
	out := flag.String("out", ".", "directory for the smallest violation")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	good, err := run(flag.Arg(0), *out, *limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

func run(path, out string, limit time.Duration) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	history, err := read(file)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	facts := gather(history)
	count, counts := 0, map[porcupine.CheckResult]int{}
	var illegal []Result
	for _, partition := range facts.partitions(history) {
		result := facts.check(partition, limit)
		count += len(partition.Operations)
		counts[result.Verdict]++
		fmt.Printf("%-12s %7d operations, %5d of them during a write, %3d unanswered (%d seen), %6.2f s: %s\n",
			fmt.Sprintf("%q", partition.Key), len(partition.Operations), partition.Overlapping,
			partition.Unanswered, partition.Seen, result.Took.Seconds(), result.Verdict)
		if result.Verdict == porcupine.Illegal {
			illegal = append(illegal, result)
		}
	}
	for at, wrong := range history.Wrong {
		if at == wrongMax {
			fmt.Printf("and %d more wrong answers\n", len(history.Wrong)-wrongMax)
			break
		}
		fmt.Println("wrong:", wrong)
	}
	if len(illegal) > 0 {
		if err := facts.show(illegal, history, out); err != nil {
			return false, err
		}
	}
	good := counts[porcupine.Ok] == len(history.Keys) && len(history.Wrong) == 0
	fmt.Printf("%d requests, %d operations on %d keys, %d kills: %d linearizable, %d not, %d unknown; %d wrong answers\n",
		len(history.Lines), count, len(history.Keys), len(history.Kills), counts[porcupine.Ok],
		counts[porcupine.Illegal], counts[porcupine.Unknown], len(history.Wrong))
	return good, nil
}

// show writes the smallest violation to a directory.
func (facts *facts) show(illegal []Result, history *History, out string) error {
	var smallest Reduced
	var key string
	for _, result := range illegal {
		reduced := facts.reduce(result.Operations)
		if smallest.Operations == nil || len(reduced.Operations) < len(smallest.Operations) {
			smallest, key = reduced, result.Key
		}
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	zero, last := smallest.Operations[0].Call, int64(0)
	for _, operation := range smallest.Operations {
		last = max(last, operation.Call)
		if operation.Return != never {
			last = max(last, operation.Return)
		}
	}
	lines := []string{fmt.Sprintf("No order explains what happened to %q, which was %v at first:", key, smallest.Initial)}
	for _, operation := range smallest.Operations {
		step := operation.Input.(*step)
		end := "         ?"
		if operation.Return != never {
			end = fmt.Sprintf("%10.3f", milliseconds(operation.Return-zero))
		}
		lines = append(lines, fmt.Sprintf("%10.3f .. %s ms  client %-2d  %v",
			milliseconds(operation.Call-zero), end, operation.ClientId, step))
	}
	for _, kill := range history.Kills {
		if *kill.End >= zero && kill.Start <= last {
			lines = append(lines, fmt.Sprintf("%10.3f .. %10.3f ms  gateway %d was killed and started again",
				milliseconds(kill.Start-zero), milliseconds(*kill.End-zero), kill.Gateway))
		}
	}
	text := strings.Join(lines, "\n") + "\n"
	fmt.Print(text)
	if err := os.WriteFile(filepath.Join(out, "violation.txt"), []byte(text), 0o666); err != nil {
		return err
	}
	operations, classes := facts.classes(smallest.Operations)
	register := &register{facts, classes, widthFirst, false}
	model := register.model(smallest.Initial)
	_, info := porcupine.CheckOperationsVerbose(model, operations, time.Minute)
	info.AddAnnotations(annotations(classes, history.Kills, zero, last))
	page := filepath.Join(out, "violation.html")
	fmt.Println("see", page)
	return porcupine.VisualizePath(model, info, page)
}

// annotations gives what porcupine does not get as operations: unanswered writes, and kills.
func annotations(classes []class, kills []*Line, first, last int64) []porcupine.Annotation {
	var found []porcupine.Annotation
	for _, class := range classes {
		for _, step := range class {
			found = append(found, porcupine.Annotation{
				Tag: "no answer", Start: step.line.Start, End: last, Description: step.String(),
			})
		}
	}
	for _, kill := range kills {
		if *kill.End >= first && kill.Start <= last {
			found = append(found, porcupine.Annotation{
				Tag: fmt.Sprintf("gateway %d", kill.Gateway), Start: kill.Start, End: *kill.End, Description: "killed",
			})
		}
	}
	return found
}

func milliseconds(nanoseconds int64) float64 { return float64(nanoseconds) / 1e6 }
