package crontab

import (
	"errors"
	"fmt"
	"strings"
)

// variable reads `NAME = value` as cron does: blanks around both are dropped, either may stand in
// single or double quotes, nothing is expanded. isVariable is false when the line has another
// shape; with isVariable, err says what is wrong and name may still be used.
func variable(s string) (name, value string, isVariable bool, err error) {
	var rest string
	if q := s[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[1:], q)
		if end < 0 {
			return "", "", false, nil
		}
		name, rest = s[1:end+1], s[end+2:]
	} else {
		end := strings.IndexAny(s, " \t=")
		if end < 0 {
			return "", "", false, nil
		}
		name, rest = s[:end], s[end:]
	}
	rest = strings.TrimLeft(rest, " \t")
	if !strings.HasPrefix(rest, "=") {
		return "", "", false, nil
	}
	value = strings.Trim(rest[1:], " \t")
	switch {
	case len(s) > MaxEnv:
		return name, "", true, fmt.Errorf("the line has %d bytes, the limit for a variable is %d", len(s), MaxEnv)
	case !isName(name):
		return name, "", true, fmt.Errorf("%q is not a variable name: it must be letters, digits and _, and not begin with a digit", name)
	case value == "":
		return name, "", true, fmt.Errorf(`%s has no value; write %s="" for an empty one`, name, name)
	}
	if q := value[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(value[1:], q)
		switch {
		case end < 0:
			return name, "", true, errors.New("the quote is not closed")
		case end != len(value)-2:
			return name, "", true, errors.New("there is text after the closing quote")
		}
		value = value[1 : end+1]
	}
	return name, value, true, nil
}

// isName reports whether s can be the name of an environment variable in a shell.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && c != '_' && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}

// looksLikeUser reports whether s has the shape of a user name: letters, digits, _ . and -, not
// beginning with a digit, . or -, perhaps with a final $, at most 32 bytes (useradd(8)).
func looksLikeUser(s string) bool {
	s = strings.TrimSuffix(s, "$")
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && c != '_' && (i == 0 || !isDigit(c) && c != '.' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) <= 32
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// startsCommand reports whether s looks like the first word of a shell command and not like an
// argument.
func startsCommand(s string) bool {
	return s != "" && (strings.Contains("/[({!$.~\"'", s[:1]) || strings.Contains(s, "=") || isCommand(s))
}

// isCommand reports whether s is a word that crontab lines often begin with.
func isCommand(s string) bool {
	switch s {
	case "apt", "apt-get", "awk", "aws", "bash", "bundle", "cat", "cd", "certbot", "chmod", "chown", "chronic",
		"command", "cp", "curl", "dash", "date", "df", "docker", "dts", "echo", "env", "eval", "exec", "export",
		"find", "flock", "for", "git", "go", "grep", "gzip", "if", "ionice", "java", "kill", "ln", "logger",
		"logrotate", "ls", "mail", "make", "mkdir", "mv", "mysqldump", "nice", "node", "nohup", "npm", "perl",
		"pg_dump", "php", "pip", "pkill", "ps", "psql", "python", "python3", "rclone", "restic", "rm", "rsync",
		"ruby", "run-parts", "scp", "sed", "service", "set", "sh", "sleep", "sort", "source", "sqlite3", "ssh",
		"su", "sudo", "systemctl", "tar", "tee", "test", "timeout", "touch", "true", "umask", "wget", "while",
		"xargs", "zip", "zsh":
		return true
	}
	return false
}
