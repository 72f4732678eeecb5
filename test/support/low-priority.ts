// Loaded before test files that mostly wait, where they run beside three brokers: those and their tests come first.
import { setPriority } from 'node:os'

/** A third of the weight of what they run beside. Processes that this one starts have it too. */
const niceness = 5

setPriority(niceness)
