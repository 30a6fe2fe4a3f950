/** Prose and verse, from the first idea to the last edit. */
import type { Topic } from "../Topic.ts"

export const writing: ReadonlyArray<Topic> = [
  {
    category: "Blog articles",
    templates: [
      "Write an article of {length} on {topic} for {audience}. Open with a scene, not a definition.",
      "Outline a post that answers the one question {audience} ask most about {topic}, with a heading for each step of the answer.",
      "Turn these notes into a readable post in a {tone} voice, and mark every claim that needs a source: {text}",
      "Suggest ten headlines for a post about {topic}; half of them plain, half curious, none promising more than it gives.",
      "List seven myths about {topic} and correct each in three sentences with an everyday example.",
      "Write an honest account of trying {product} for {duration}: what worked, what did not, who should skip it.",
      "Draft a series of five posts that take a reader from {level} to confident in {skill}. Give each a title and its promise.",
      "Write the paragraph that makes a busy {role} read on about {topic}, in under sixty words."
    ]
  },
  {
    category: "Short stories",
    templates: [
      "Begin a {genre} story in the middle of an argument between {character} and someone they owe money.",
      "Tell of one night in {place} through three people who never meet but pass on the same object.",
      "Write a story of {length} in which {character} gets exactly what they asked for, and regrets it by the last line.",
      "A letter arrives forty years late. Write what {character} does in the hour after reading it.",
      "Retell a well-known fairy tale in {period}, from the side of the one who is blamed in it.",
      "Write a ghost story set in {place} without a ghost, without death, and without the dark.",
      "Two strangers are stuck in a lift with a {animal}. Keep it to dialogue alone and let the reader work out why.",
      "Give me five first lines for a {genre} story about {topic}, each with another narrator."
    ]
  },
  {
    category: "Poetry and song lyrics",
    templates: [
      "Write a sonnet about {topic} that turns in line nine from praise to doubt.",
      "A haiku for each month of the year in {place}, without naming the month.",
      "Lyrics for a slow song in which {character} says goodbye to {place}; the chorus must make sense at a wedding and at a funeral.",
      "Write a nursery rhyme that teaches children of {age} years about {topic}, easy to clap to.",
      "Compose a poem from the point of view of {product} on its last day of use, in a {tone} voice.",
      "Write eight lines on {mood} in which no feeling is named.",
      "Set {text} as a ballad of six verses with a refrain, keeping every fact.",
      "Explain the metre of this poem line by line and propose a better word wherever it stumbles: {text}"
    ]
  },
  {
    category: "Screenwriting and dialogue",
    templates: [
      "Write a two-page scene in which {character} must lie to a friend while cooking dinner.",
      "Pitch a series about {topic} in one sentence, then in one paragraph, then as the first episode in ten beats.",
      "Rewrite this dialogue so that nobody says what they mean: {text}",
      "Write the cold open of a {genre} show set in {place}; end it on an image, not on a line.",
      "Give {character} a monologue of ninety seconds that starts about the weather and ends about {topic}.",
      "Break this plot into sequences and tell me where the audience knows more than {character}: {text}",
      "Write a radio play for two voices and one sound effect, about {problem}.",
      "Describe the opening shot, the midpoint reversal and the closing shot of a film called {name}."
    ]
  },
  {
    category: "World-building",
    templates: [
      "Invent a city in which {topic} is forbidden. Describe its market, its school and how people get around the rule.",
      "Design a calendar for the people of {place}: months, feasts, and the day on which nothing may be lent.",
      "Work out the economy of a kingdom whose only export is {product}. Who grows rich, and who pays?",
      "Create three rival guilds of {role}s, with one belief that all share and one that splits them.",
      "Describe a system of magic that costs {material} each time; state its limits and how crime uses it.",
      "Write the entry on {name} from an encyclopedia printed in a world that never had {period}.",
      "Sketch the ecology of a planet where {animal}s are the only large creatures: food, seasons, dangers.",
      "List twenty rumours that a traveller may hear in the taverns of {place}; four of them are true."
    ]
  },
  {
    category: "Editing and rewriting",
    templates: [
      "Cut this text to {length} without losing an argument, and list what you removed: {text}",
      "Rewrite the passage in plain English for {audience}; no sentence over twenty words: {text}",
      "Point out the weakest paragraph below, say why, and offer two ways to mend it: {text}",
      "Make the tone {tone} throughout. Show the changed sentences only, old beside new: {text}",
      "Check the following for claims that contradict each other, and quote both places: {text}",
      "Turn passive voice into active wherever the actor is known, and leave the rest alone: {text}",
      "Act as a copy editor: correct spelling, grammar and punctuation, keep my voice, explain only what surprises: {text}",
      "Read this as a sceptical {role} would and write the questions in the margin: {text}"
    ]
  },
  {
    category: "Speeches and toasts",
    templates: [
      "Write a wedding toast of {duration} by {name}, with one story, one laugh and no inside jokes.",
      "Draft a speech to open {occasion} for {audience}: welcome, why we are here, what happens next.",
      "Write a farewell for {name}, who worked as {role} for twenty years; grateful, not sentimental.",
      "Prepare remarks in which {company} admits {problem}: what happened, what we owe you, what changes on Monday.",
      "Shape these points into a talk with a line that people will repeat afterwards: {text}",
      "A eulogy for {name} built around three objects they left on their desk.",
      "Write an acceptance speech for a prize in {industry} that thanks five people in under a minute.",
      "Give me an opening for a talk on {topic} that begins with a number, one with a question and one with silence."
    ]
  }
]
