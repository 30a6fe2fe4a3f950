/** What a replay of one stream is given, and whom it tells. */

/** What is wrong, under the name of a rule. */
export type Say = (rule: string, detail: string) => void

/** Takes the next event of a stream: its type, its JSON, when it was decided (milliseconds since 1970), and where it stands in the log. */
export type Replay = (type: string, data: string, at: number, position: string) => void
