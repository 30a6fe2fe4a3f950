/** Temporary mail as its users see it: what the API answers, a client that sends, and one that speaks SMTP line by line. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { Schema } from "effect"
import { createTransport, type SendMailOptions } from "nodemailer"
import { type Answer, type Call, call, type Server } from "./Server.ts"

export const DOMAIN = "inbox.example"

// the API

const Envelope = Schema.fromJsonString(Schema.Struct({ data: Schema.Unknown }))
export const Inbox = Schema.Struct({
  inbox_id: Schema.String,
  address: Schema.String,
  label: Schema.NullOr(Schema.String),
  expires_at: Schema.String,
  message_count: Schema.Int
})
export const Messages = Schema.Struct({
  messages: Schema.Array(
    Schema.Struct({ message_id: Schema.String, subject: Schema.NullOr(Schema.String), has_attachments: Schema.Boolean })
  )
})
export const Message = Schema.Struct({
  text: Schema.NullOr(Schema.String),
  html: Schema.NullOr(Schema.String),
  headers: Schema.Record(Schema.String, Schema.Array(Schema.String)),
  attachments: Schema.Array(Schema.Struct({ name: Schema.NullOr(Schema.String), size: Schema.Int, url: Schema.String }))
})

/** What an answer is about, in the shape that it is read in. Fails if the call did. */
export const dataOf = <A>(shape: Schema.Codec<A, unknown>, { body, status }: Answer): A => {
  if (status >= 300) throw new Error(`${status}: ${body}`)
  return Schema.decodeUnknownSync(shape)(Schema.decodeUnknownSync(Envelope)(body).data)
}

export const INBOXES = "/temp-mail/inboxes"

/** The calls of one key at a server. */
export const asking = (server: Pick<Server, "url">, key: string) => {
  const send = (path: string, sent: Call = {}) => call(`${server.url}/api/v1${path}`, { key, ...sent })
  const get = async <A>(shape: Schema.Codec<A, unknown>, path: string, sent: Call = {}): Promise<A> => dataOf(shape, await send(path, sent))
  return {
    send,
    get,
    /** A new inbox. */
    create: (body: { readonly lifetime?: number; readonly label?: string } = {}) =>
      get(Inbox, INBOXES, { method: "POST", body: JSON.stringify(body) }),
    rotate: (inbox: string) => get(Inbox, `${INBOXES}/${inbox}/rotate`, { method: "POST" }),
    /** The subjects of the messages of an inbox, the newest first; with `wait`, seconds, an empty list waits. */
    subjects: async (inbox: string, wait?: number) => {
      const headers = wait === undefined ? {} : { prefer: `wait=${wait}` }
      const { messages } = await get(Messages, `${INBOXES}/${inbox}/messages?per_page=100`, { headers })
      return messages.map(({ subject }) => subject)
    }
  }
}

// senders

const portOf = ({ smtp }: Pick<Server, "smtp">): number => Number(smtp?.split(":").at(-1))

/** A real client, which keeps its connections. */
export const senderTo = (server: Pick<Server, "smtp">) => {
  const transport = createTransport({ host: "127.0.0.1", port: portOf(server), ignoreTLS: true, pool: true })
  return { send: (mail: SendMailOptions) => transport.sendMail({ from: "shop@example.org", ...mail }), close: () => transport.close() }
}

/** A client that writes what a test tells it, and reads the answers in their order. */
export class SmtpClient {
  readonly socket: Socket
  /** What the server offers: its answer to EHLO. */
  offer = ""
  readonly #answers: Array<string> = []
  #lines: Array<string> = []
  #rest = ""
  #changed = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding("latin1").on("data", (text: string) => {
      const lines = (this.#rest + text).split("\r\n")
      this.#rest = lines.pop() ?? ""
      for (const line of lines) {
        this.#lines.push(line)
        if (line[3] !== "-") this.#answers.push(this.#lines.splice(0).join("\n"))
      }
      this.#changed()
    })
    // A server may be killed
    socket.on("error", () => {})
    socket.once("close", () => this.#changed())
  }

  /** A connection whose greeting and EHLO were answered. */
  static async open(server: Pick<Server, "smtp">): Promise<SmtpClient> {
    const client = new SmtpClient(connect({ host: "127.0.0.1", port: portOf(server) }))
    await client.answer()
    client.write("EHLO client.example.org\r\n")
    client.offer = (await client.answer()) ?? ""
    return client
  }

  /** The next answer, its lines joined; undefined where the connection closed first. */
  async answer(): Promise<string | undefined> {
    while (this.#answers.length === 0 && !this.socket.closed) await new Promise<void>((resolve) => (this.#changed = resolve))
    return this.#answers.shift()
  }

  write(text: string): void {
    if (this.socket.writable) this.socket.write(text)
  }

  /** Writes a line, and waits for the code of its answer. */
  async ask(line: string): Promise<string | undefined> {
    this.write(`${line}\r\n`)
    return (await this.answer())?.slice(0, 3)
  }

  /** The code for an address at RCPT TO. The transaction begins with it. */
  async recipient(address: string): Promise<string | undefined> {
    await this.ask("RSET")
    await this.ask("MAIL FROM:<shop@example.org>")
    return this.ask(`RCPT TO:<${address}>`)
  }

  /** Begins a message to an address, up to the answer to DATA, which it gives. */
  async begin(address: string): Promise<string | undefined> {
    const code = await this.recipient(address)
    return code === "250" ? this.ask("DATA") : code
  }

  async close(): Promise<void> {
    this.socket.destroy()
    if (!this.socket.closed) await once(this.socket, "close")
  }
}
