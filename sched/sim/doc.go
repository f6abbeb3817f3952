// Package sim holds no code, only a test: a simulation of the scheduler.
//
// It runs the real scheduler in fake time over a store in memory that fails, hangs and answers late, with a clock that is
// set forward and back and a process that dies between any two steps, and holds afterwards what dts promises. Each history is made from
// a seed. A differential test holds the store in memory against the real one, and TestFaults plants mistakes in the product and
// demands that its tests find them.
//
// DTS_SIM_HISTORIES says how many histories, DTS_SIM_SECONDS for how long, DTS_SIM_SEED which one alone; DTS_SIM_FAULTS
// which faults to plant.
package sim
