/** The replay of one stream: what it takes, and how it reports problems. */

/** Reports a problem under the name of a rule. */
export type ReportProblem = (rule: string, detail: string) => void

/** Takes the next event of a stream: its type, its JSON, when it was decided (milliseconds since 1970), and its position in the log. */
export type Replay = (type: string, data: string, at: number, position: string) => void
