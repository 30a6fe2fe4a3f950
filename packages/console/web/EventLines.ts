/** Server-sent events as text: the parser of the stream's format. WHATWG HTML, section 9.2.6. */

export interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** A parser that takes the stream's text in pieces as they come, and returns the events that each piece completes. */
export const eventParser = (): ((piece: string) => ReadonlyArray<ServerEvent>) => {
  let rest = ""
  let name = ""
  let data: Array<string> = []
  return (piece) => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/u)
    rest = lines.pop() ?? ""
    return lines.flatMap((line) => {
      if (line === "") {
        const event = { name: name === "" ? "message" : name, data: data.join("\n") }
        const isEmpty = data.length === 0
        name = ""
        data = []
        return isEmpty ? [] : [event]
      }
      const { field = "", value = "" } = /^(?<field>[^:]*)(?:: ?(?<value>.*))?$/u.exec(line)?.groups ?? {}
      if (field === "event") name = value
      if (field === "data") data.push(value)
      return []
    })
  }
}
