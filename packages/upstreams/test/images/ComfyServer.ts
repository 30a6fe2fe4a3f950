/** A ComfyUI server on loopback: a queue, a history and files, as its published routes give them. What it draws is said by the test. */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { type Answer, bytes, formOf, json, jsonOf, serve } from "./VendorService.ts"

export interface File {
  readonly filename: string
  readonly subfolder: string
  readonly type: string
}

type Item = readonly [number: number, id: string, prompt: unknown, extra: unknown, outputs: ReadonlyArray<string>]

const entryOf = (item: Item, outputs: unknown, status: "success" | "error") => ({
  prompt: item,
  outputs,
  status: { status_str: status, completed: status === "success", messages: [["execution_start", { prompt_id: item[1], timestamp: 1 }]] },
  meta: {}
})

/**
 * `knowsIds`: it takes the id that a client gives, as newer ones do. `answers`: what it answers instead, by path. `draws`: what it has
 * drawn by the time it answers; nothing unless told.
 */
export const start = (
  options: {
    readonly knowsIds?: boolean
    readonly answers?: Readonly<Record<string, Answer>>
    readonly draws?: ReadonlyArray<Uint8Array>
  } = {}
) =>
  Effect.gen(function* () {
    const running: Array<Item> = []
    const pending: Array<Item> = []
    const history = new Map<string, unknown>()
    const files = new Map<string, Uint8Array>()
    const uploads: Array<FormData> = []
    const interrupted: Array<string | undefined> = []
    let number = 0

    const drop = (items: Array<Item>, ids: ReadonlyArray<unknown>) => {
      const kept = items.filter(([, id]) => !ids.includes(id))
      items.splice(0, items.length, ...kept)
    }

    /** Begins with the first that waits. */
    const begin = () => {
      const item = pending.shift()
      if (item !== undefined) running.push(item)
      return item?.[1]
    }

    /** Ends what is running. */
    const finish = (drawings: ReadonlyArray<Uint8Array>, status: "success" | "error" = "success") => {
      const item = running.shift()
      if (item === undefined) throw new Error("nothing is running")
      const images = drawings.map((drawing, i): File => {
        const file = { filename: `ComfyUI temp & ${number}_${i}.png`, subfolder: "", type: "temp" }
        files.set(`temp//${file.filename}`, drawing)
        return file
      })
      history.set(item[1], entryOf(item, status === "success" ? { preview: { images } } : {}, status))
    }

    /** Restarts, and has forgotten it all. */
    const forget = () => {
      for (const items of [running, pending]) items.length = 0
      history.clear()
    }

    const routes: Record<string, Answer> = {
      "POST /prompt": (response, asked) => {
        const { prompt, prompt_id } = jsonOf(asked)
        const id = options.knowsIds === false || typeof prompt_id !== "string" ? randomUUID() : prompt_id
        pending.push([number++, id, prompt, {}, ["preview"]])
        if (options.draws !== undefined) {
          begin()
          finish(options.draws)
        }
        json({ prompt_id: id, number, node_errors: {} })(response, asked)
      },
      "GET /queue": (response, asked) => json({ queue_running: running, queue_pending: pending })(response, asked),
      "POST /queue": (response, asked) => {
        const ids = jsonOf(asked)["delete"]
        if (Array.isArray(ids)) drop(pending, ids)
        response.writeHead(200).end()
      },
      "POST /interrupt": (response, asked) => {
        const { prompt_id } = jsonOf(asked)
        interrupted.push(typeof prompt_id === "string" ? prompt_id : undefined)
        response.writeHead(200).end()
      },
      "POST /history": (response, asked) => {
        const ids = jsonOf(asked)["delete"]
        for (const id of Array.isArray(ids) ? ids : []) history.delete(String(id))
        response.writeHead(200).end()
      },
      "GET /history": (response, asked) => {
        const id = asked.path.slice("/history/".length)
        json(history.has(id) ? { [id]: history.get(id) } : {})(response, asked)
      },
      "GET /view": (response, asked) => {
        const { filename, subfolder, type } = Object.fromEntries(asked.query)
        const file = files.get(`${type}/${subfolder}/${filename}`)
        if (file === undefined) response.writeHead(404).end()
        else bytes(file)(response, asked)
      },
      "POST /upload/image": async (response, asked) => {
        const form = await formOf(asked)
        uploads.push(form)
        const image = form.get("image")
        json({ name: image instanceof File ? image.name : "", subfolder: "", type: form.get("type") ?? "input" })(response, asked)
      }
    }

    const service = yield* serve((response, asked) => {
      const name = asked.path.startsWith("/history/") ? "/history" : asked.path
      const answer = options.answers?.[name] ?? routes[`${asked.method} ${name}`]
      if (answer === undefined) response.writeHead(404).end()
      else answer(response, asked)
    })

    return { ...service, pending, running, history, uploads, interrupted, begin, finish, forget }
  })
