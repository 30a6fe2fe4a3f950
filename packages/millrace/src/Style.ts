/** Colour on a terminal that has it. Node decides by the terminal, `NO_COLOR` and `FORCE_COLOR`; a pipe gets none. */
import { styleText } from "node:util"

type Format = Parameters<typeof styleText>[0]

export const style = (format: Format, text: string): string => styleText(format, text, { stream: process.stdout })

/** The head of a table. */
export const head = (text: string): string => style("bold", text)
export const good = (text: string): string => style("green", text)
export const bad = (text: string): string => style(["bold", "red"], text)
export const faint = (text: string): string => style("dim", text)
