package exec

import "time"

// Boot returns what names this boot of the machine, and when it was. id is "" where it cannot be told.
func Boot() (id string, at time.Time) { return bootID(), bootTime() }
