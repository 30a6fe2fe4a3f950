/** What the bundled library of prompts is made of. */

/** A category with its templates: whole prompts in plain English, to be used once their placeholders are filled. */
export interface Topic {
  readonly category: string
  readonly templates: ReadonlyArray<string>
}

/** Every placeholder that a template may hold, as `{name}`, and what belongs in its place. */
export const PLACEHOLDERS = {
  // what it is about
  topic: "a subject in a few words, such as renewable energy",
  subject: "who or what is shown, told of or taught",
  goal: "what is to be reached, such as running ten kilometres",
  problem: "what is wrong or in the way",
  constraint: "what has to be avoided, such as nuts",
  occasion: "an event or a feast",

  // who takes part
  audience: "whom it is for",
  role: "a job, or a part that someone plays, such as nurse",
  character: "someone in a story, with a trait or two",
  name: "what somebody or something is called",
  age: "the age of a child, in years",
  animal: "a kind of animal",
  company: "an organisation",
  industry: "a line of business",

  // with what, where and when
  product: "a thing or a service that is made, sold or used",
  material: "what something is made of",
  ingredients: "food at hand, separated by commas",
  technology: "a programming language, a framework or a tool",
  place: "a town, a country or a landscape, real or not",
  period: "a time in history, such as the 1920s",
  season: "a time of the year",

  // how
  tone: "how it sounds, such as warm or formal",
  mood: "a feeling, such as quiet hope",
  style: "a manner in art, such as Bauhaus",
  genre: "a kind of story, music or film",
  palette: "colours, such as ochre and slate blue",
  language: "a language that people speak",
  level: "how much is known already, such as beginner",
  skill: "something that can be learnt",

  // how much
  length: "how long a text may be, such as 300 words",
  duration: "how long it takes, such as two weeks",
  budget: "an amount of money",
  number: "how many, such as 6",

  // what is worked on, pasted whole
  text: "a text",
  code: "source code",
  data: "a table, a list or figures"
} as const

export type Placeholder = keyof typeof PLACEHOLDERS
