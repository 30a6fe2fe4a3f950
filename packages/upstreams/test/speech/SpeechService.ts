/** A server that speaks OpenAI's speech API as it is published: it checks what it is asked, and answers with sound or with an error. */
import type { ServerResponse } from "node:http"
import { type Answer, json } from "../shared/LocalService.ts"

export const API_KEY = "sk-test-0123456789"
export const MODEL = "gpt-4o-mini-tts"

const MAX_INPUT = 4_096
const VOICES = ["alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse", "marin", "cedar"]
const FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm"]

/** Frames of silence: 48 kbit/s, 22,050 Hz, one channel. */
export const silence = (frames: number): Buffer => Buffer.concat(Array.from({ length: frames }, () => FRAME))
const FRAME = Buffer.alloc(156)
FRAME.write("fff360c4", "hex")

/** As much sound as there is text. */
export const soundOf = (input: string): Buffer => silence(1 + input.length)

export const failure = (status: number, message: string, error: { readonly param?: string; readonly code?: string } = {}): Answer =>
  json({ error: { message, type: "invalid_request_error", param: null, code: null, ...error } }, status)

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === "object" && value !== null

/** In pieces, as it is made. */
export const speak =
  (sound: Uint8Array): Answer =>
  (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "audio/mpeg", "transfer-encoding": "chunked" })
    for (let at = 0; at < sound.length; at += 1_000) response.write(sound.subarray(at, at + 1_000))
    response.end()
  }

export const openAi: Answer = (response, request) => {
  const refuse = (...args: Parameters<typeof failure>) => failure(...args)(response, request)
  if (request.headers.authorization !== `Bearer ${API_KEY}`)
    return refuse(401, "Incorrect API key provided: sk-wrong.", { code: "invalid_api_key" })
  if (request.method !== "POST" || request.path !== "/v1/audio/speech")
    return refuse(404, `Invalid URL (${request.method} ${request.path})`)
  if (request.headers["content-type"] !== "application/json") return refuse(415, "you must provide a JSON body")
  const body: unknown = JSON.parse(request.body)
  if (!isObject(body)) return refuse(400, "We could not parse the JSON body of your request.")
  const { model, input, voice, response_format = "mp3", ...others } = body
  if (model !== MODEL) return refuse(404, `The model ${model} does not exist.`, { param: "model", code: "model_not_found" })
  if (typeof input !== "string" || input === "")
    return refuse(400, "Expected a string with minimum length 1.", { param: "input", code: "string_below_min_length" })
  if (input.length > MAX_INPUT)
    return refuse(400, `String should have at most ${MAX_INPUT} characters.`, { param: "input", code: "string_above_max_length" })
  if (typeof voice !== "string" || !VOICES.includes(voice)) return refuse(400, "Input should be 'nova', ...", { param: "voice" })
  if (typeof response_format !== "string" || !FORMATS.includes(response_format))
    return refuse(400, "Input should be 'mp3', ...", { param: "response_format" })
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) return refuse(400, `Unknown parameter: '${unknown}'.`, { param: unknown, code: "unknown_parameter" })
  return speak(soundOf(input))(response, request)
}
