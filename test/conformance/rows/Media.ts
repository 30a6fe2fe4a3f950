/** Images and speech: jobs, and the files that they make. */
import { flag, integer, jobId, number, type Row, row, source, text, urlOf } from "../Row.ts"

const prompt = text({ required: true, maxLength: 2000 })
const side = integer({ minimum: 256, maximum: 2048, sample: 512 })
const ofImage = { path: { job: jobId() }, price: 0, madeBy: "image.generate" }
const ofSpeech = { path: { job: jobId() }, price: 0, madeBy: "speech.synthesize" }

export const media: ReadonlyArray<Row> = [
  row("POST", "/ai/images", "image.generate", {
    body: { prompt, width: side, height: side, translate: flag(), samples: integer({ minimum: 1, maximum: 4 }) },
    price: 8,
    makesJob: true
  }),
  row("POST", "/ai/images/edit", "image.edit", {
    body: {
      prompt,
      image_url: source({ maxLength: 2048, ofLength: urlOf }),
      job_id: source(),
      image: source(),
      translate: flag(),
      allow_prompt_only: flag({ only: true, lacks: "image" }),
      width: side,
      height: side,
      strength: number({ sample: 0.5 })
    },
    price: 8,
    makesJob: true,
    // A picture, or leave to do without
    beside: { allow_prompt_only: true },
    notShown: ["bounds of strength"]
  }),
  row("GET", "/ai/images/{job}", "image.read", ofImage),
  row("DELETE", "/ai/images/{job}", "image.cancel", ofImage),
  row("GET", "/ai/images/{job}/artifact", "image.download", { ...ofImage, answer: "bytes" }),

  row("POST", "/audio/tts", "speech.synthesize", {
    body: { text: text({ required: true, maxLength: 2000 }), voice: text({ maxLength: 50, sample: "en-us", ofLength: null }) },
    price: 5,
    makesJob: true
  }),
  row("GET", "/audio/tts/{job}", "speech.read", ofSpeech),
  row("DELETE", "/audio/tts/{job}", "speech.cancel", ofSpeech),
  row("GET", "/audio/tts/{job}/artifact", "speech.download", { ...ofSpeech, answer: "bytes" }),
  row("GET", "/audio/voices", "speech.voices", { query: { category: text() }, notShown: ["answer"] })
]
