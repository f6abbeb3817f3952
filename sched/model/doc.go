// Package model holds no code, only a test: a model of what becomes of tasks, and the real thing beside it.
//
// The model (model_test.go) is a few maps and says of each task whether it waits, runs or has ended, how, and after how many
// attempts. Rapid draws what is done: tasks are created, depend on each other, fail, are retried, cancelled and
// deleted, and the server crashes and starts again. Each step is done to the model and to a real scheduler over a real
// SQLite file, in fake time; afterwards both must agree about every task, every attempt and every dependency.
//
// DTS_MODEL_STEPS says how many steps; 3000 without it. What fails prints a seed: -rapid.seed=N does it again.
package model
