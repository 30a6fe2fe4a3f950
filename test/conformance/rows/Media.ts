/** Images and speech: jobs, and the files that they make. */
import { flag, id, integer, number, type Row, row, text, url } from "../Row.ts"

const prompt = text({ required: true, maxLength: 2000 })
const side = integer({ minimum: 256, maximum: 2048, sample: 512 })
const job = { path: { job: id() }, price: 0 }

export const media: ReadonlyArray<Row> = [
  row("POST", "/ai/images", "image.generate", {
    body: { prompt, width: side, height: side, translate: flag(), samples: integer({ minimum: 1, maximum: 4 }) },
    price: 8
  }),
  row("POST", "/ai/images/edit", "image.edit", {
    body: {
      prompt,
      image_url: url(),
      job_id: text({ ofLength: null }),
      image: text({ ofLength: null }),
      translate: flag(),
      allow_prompt_only: flag(),
      width: side,
      height: side,
      strength: number({ sample: 0.5 })
    },
    price: 8,
    notShown: ["bounds of strength"]
  }),
  row("GET", "/ai/images/{job}", "image.read", job),
  row("DELETE", "/ai/images/{job}", "image.cancel", job),
  row("GET", "/ai/images/{job}/artifact", "image.download", { ...job, answer: "bytes" }),

  row("POST", "/audio/tts", "speech.synthesize", {
    body: { text: text({ required: true, maxLength: 2000 }), voice: text({ maxLength: 50, sample: "en", ofLength: null }) },
    price: 5
  }),
  row("GET", "/audio/tts/{job}", "speech.read", job),
  row("DELETE", "/audio/tts/{job}", "speech.cancel", job),
  row("GET", "/audio/tts/{job}/artifact", "speech.download", { ...job, answer: "bytes" }),
  row("GET", "/audio/voices", "speech.voices", { query: { category: text() }, notShown: ["answer"] })
]
