package cron

import (
	"testing"
	"time"
)

func TestDescribeRule(t *testing.T) {
	start := time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ rule, want string }{
		{"FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU", "Every 2 months on the second Tuesday, at 09:00, from 2026-03-10"},
		{"FREQ=DAILY", "Every day, at 09:00"},
		{"FREQ=DAILY;BYHOUR=9,17;BYMINUTE=30", "Every day, at 09:30 and 17:30"},
		{"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "Every week on Monday to Friday, at 09:00"},
		{"FREQ=WEEKLY", "Every week on Tuesday, at 09:00"},
		{"FREQ=MONTHLY", "Every month on day 10, at 09:00"},
		{"FREQ=MONTHLY;BYMONTHDAY=1,-1", "Every month on day 1 and the last day, at 09:00"},
		{"FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "Every month on Friday, only if that is day 13, at 09:00"},
		{"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "Every month, only the last of the times on Monday to Friday, at 09:00"},
		{"FREQ=MONTHLY;BYDAY=-2FR", "Every month on the second to last Friday, at 09:00"},
		{"FREQ=YEARLY", "Every year on day 10 of March, at 09:00"},
		{"FREQ=YEARLY;BYMONTH=1,7;BYMONTHDAY=1", "Every year on day 1 in January and July, at 09:00"},
		{"FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "Every year on the fourth Thursday in November, at 09:00"},
		{"FREQ=YEARLY;BYDAY=20MO", "Every year on the 20th Monday of the year, at 09:00"},
		{"FREQ=YEARLY;BYYEARDAY=100,-1", "Every year on day 100 and the last day of the year, at 09:00"},
		{"FREQ=YEARLY;BYWEEKNO=20", "Every year on Tuesday in week 20 of the year, at 09:00"},
		{"FREQ=HOURLY", "Every hour"},
		{"FREQ=HOURLY;INTERVAL=3;BYMINUTE=15,45", "Every 3 hours, at minutes 15 and 45, from 2026-03-10"},
		{"FREQ=HOURLY;BYHOUR=9,10,11;BYDAY=MO", "Every hour on Monday, at minute 0 of hours 9, 10 and 11"},
		{"FREQ=DAILY;COUNT=5", "Every day, at 09:00, 5 times"},
		{"FREQ=DAILY;UNTIL=20271231", "Every day, at 09:00, until 2027-12-31"},
		{"FREQ=DAILY;UNTIL=20271231T080000Z", "Every day, at 09:00, until 2027-12-31 08:00:00 UTC"},
		{"FREQ=DAILY;BYSECOND=0,30", "Every day, at minute 0 of hour 9, at seconds 0 and 30"},
	} {
		got, err := DescribeRule(tt.rule, start)
		if err != nil || got != tt.want {
			t.Errorf("DescribeRule(%q)\n got %q, %v\nwant %q", tt.rule, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ rule, want string }{
		{"FREQ=MONTHLY;INTERVAL=2;BYDAY=2TU", "Every 2 months on the second Tuesday"},
		{"FREQ=YEARLY", "Every year"},
		{"FREQ=DAILY;BYHOUR=9", "Every day, in hour 9"},
	} {
		if got, err := DescribeRule(tt.rule, time.Time{}); err != nil || got != tt.want {
			t.Errorf("DescribeRule(%q) without a start\n got %q, %v\nwant %q", tt.rule, got, err, tt.want)
		}
	}
	if got, err := DescribeRule("FREQ=DAILY", start.Add(30*time.Second+1)); err != nil || got != "Every day, at 09:00:31" {
		t.Errorf("a start between two seconds: %q, %v", got, err)
	}
	for _, rule := range []string{"", "FREQ=MINUTELY", "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30"} {
		if got, err := DescribeRule(rule, start); err == nil {
			t.Errorf("DescribeRule(%q) = %q, want an error", rule, got)
		}
	}
}
