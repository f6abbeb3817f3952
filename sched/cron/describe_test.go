package cron

import (
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{"* * * * *", "Every minute"},
		{"*/5 * * * *", "Every 5 minutes"},
		{"10 3 * * 0", "At 03:10 on Sunday"},
		{"18 */3 * * *", "At minute 18 of every 3rd hour"},
		{"24 1 * * *", "At 01:24 every day"},
		{"30 7-23 * * *", "At minute 30 of hours 7 to 23"},
		{"0 */12 * * *", "At 00:00 and 12:00 every day"},
		{"0 */6 * * *", "Every 6 hours"},
		{"17 * * * *", "At minute 17 of every hour"},
		{"47 6 * * 7", "At 06:47 on Sunday"},
		{"52 6 1 * *", "At 06:52 on day 1 of the month"},
		{"09,39 * * * *", "At minutes 9 and 39 of every hour"},
		{"5-55/10 * * * *", "Every 10th minute from 5 to 55 of every hour"},
		{"59 23 * * *", "At 23:59 every day"},
		{"0 9 * * mon-fri", "At 09:00 on Monday to Friday"},
		{"0 9 * * sat,sun", "At 09:00 on Saturday and Sunday"},
		{"*/5 9-17 * * 1-5", "Every 5 minutes from 09:00 to 17:59 on Monday to Friday"},
		{"* 2 * * *", "Every minute from 02:00 to 02:59"},
		{"*/7 * * * *", "Every 7th minute from 0 to 59 of every hour"},
		{"0 0 1,15 * 1", "At 00:00 on days 1 and 15 of the month or on Monday"},
		{"0 0 */2 * 1", "At 00:00 on every 2nd day from day 1 of the month, only if that is Monday"},
		{"0 0 */2 * *", "At 00:00 on every 2nd day from day 1 of the month"},
		{"0 0 L * *", "At 00:00 on the last day of the month"},
		{"0 0 L-3 * *", "At 00:00 on the day 3 days before the last day of the month"},
		{"0 0 LW * ?", "At 00:00 on the last working day (Monday to Friday) of the month"},
		{"0 0 15W * *", "At 00:00 on the working day nearest day 15 of the month"},
		{"0 0 * * 5L", "At 00:00 on the last Friday of the month"},
		{"0 0 * * 5#3", "At 00:00 on the third Friday of the month"},
		{"0 0 * 3 7L", "At 00:00 on the last Sunday of March"},
		{"0 0 1 jan ?", "At 00:00 on day 1 of January"},
		{"0 0 1 */3 *", "At 00:00 on day 1 of the month in January, April, July and October"},
		{"0 0 * 6-8 *", "At 00:00 every day from June to August"},
		{"0 0 1-31 * 1", "At 00:00 every day"},
		{"H * * * *", "At a stable minute of every hour"},
		{"H/15 * * * *", "Every 15th minute from a stable start of every hour"},
		{"H(0-29) 3 * * *", "At a stable minute between 0 and 29 of hour 3"},
		{"0~30 * * * *", "At a stable minute between 0 and 30 of every hour"},
		{"H H * * H", "At a stable minute of a stable hour on a stable weekday"},
		{"* * * * * *", "Every second"},
		{"*/10 * * * * *", "Every 10 seconds"},
		{"30 * * * * *", "At second 30 of every minute"},
		{"0 */5 * * * *", "Every 5 minutes"},
		{"30 0 3 * * *", "At 03:00:30 every day"},
		{"*/10 5 * * * *", "Every 10 seconds of minute 5 of every hour"},
		{"* 30 2 * * *", "Every second of minute 30 of hour 2"},
		{"* * 2 * * *", "Every second of every minute of hour 2"},
		{"@daily", "At 00:00 every day"},
		{"@hourly", "Every hour"},
		{"@weekly", "At 00:00 on Sunday"},
		{"@yearly", "At 00:00 on day 1 of January"},
		{"@reboot", "Once after each boot"},
		{"@every 90s", "Every 90 seconds"},
		{"CRON_TZ=Europe/Berlin 10 3 * * 0", "At 03:10 on Sunday (Europe/Berlin)"},
	} {
		got, err := Describe(tt.expr)
		if err != nil || got != tt.want {
			t.Errorf("Describe(%q)\n got %q, %v\nwant %q", tt.expr, got, err, tt.want)
		}
	}
	for _, expr := range []string{"", "0 0 30 2 *", "61 * * * *"} {
		if got, err := Describe(expr); err == nil {
			t.Errorf("Describe(%q) = %q, want an error", expr, got)
		}
	}
}

func TestDescribeEvery(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{time.Second, "Every second"},
		{90 * time.Second, "Every 90 seconds"},
		{3 * time.Hour, "Every 3 hours"},
		{24 * time.Hour, "Every day"},
		{14 * 24 * time.Hour, "Every 14 days"},
		{36 * time.Hour, "Every 36 hours"},
		{1500 * time.Millisecond, "Every 1500 milliseconds"},
	} {
		if got := DescribeEvery(tt.d); got != tt.want {
			t.Errorf("DescribeEvery(%v) = %q, want %q", tt.d, got, tt.want)
		}
	}
}
