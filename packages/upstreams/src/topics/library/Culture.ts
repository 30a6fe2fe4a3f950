/** Play, music, books, films, history and the world around. */
import type { Topic } from "../Topic.ts"

export const culture: ReadonlyArray<Topic> = [
  {
    category: "Games and role-play",
    templates: [
      "Lead me through a text adventure in {place}: describe, wait for what I do, keep track of what I carry.",
      "Design a card game for {number} players about {topic}, with rules that fit on one side of paper.",
      "Create a one-shot adventure for a tabletop group: hook, three scenes, a choice that matters, {mood} ending.",
      "Write ten riddles whose answers are things that a {role} uses.",
      "Balance this game: players say that {problem}. Offer three small changes and what each might break: {text}",
      "Invent a shopkeeper for a fantasy town: voice, secret, three wares, what they refuse to sell.",
      "Plan an escape room in a living room around {topic}: five puzzles, one theme, {duration} to solve.",
      "Turn {skill} into a game for {audience}, with levels and a reward that is not points."
    ]
  },
  {
    category: "Music",
    templates: [
      "Suggest a chord progression for a {genre} song that feels like {mood}, and explain where the tension lies.",
      "Introduce me to {genre} through ten recordings, from the easiest to love to the strangest.",
      "Explain what to listen for in {name}, minute by minute, to someone who cannot read music.",
      "Plan practice on the guitar for {goal} in {duration} a day: warm-up, technique, piece, fun.",
      "Describe a film score for a scene in {place} where nothing moves: instruments, tempo, silence.",
      "Write the programme note for a concert about {topic}, in {length}, for people who came by chance.",
      "How did music change in {place} during {period}, and which song shows it best?",
      "Help me arrange this melody for {number} voices that are not trained: {text}"
    ]
  },
  {
    category: "Books and reading groups",
    templates: [
      "Recommend five books for someone who loved {name}, each for another reason.",
      "Write discussion questions about {name} that cannot be answered without having read it.",
      "Give me a reading list on {topic}: one classic, one that contradicts it, one novel, one for children.",
      "Review {name} in {length} without giving away anything after the first third.",
      "Imagine a letter from {character} to the author, complaining about how the book ended.",
      "Compare how two novels treat {topic}, with a short passage to look up in each.",
      "Which books should a young {role} read before thirty, and which afterwards?",
      "Retell the plot of {name} as gossip between two neighbours."
    ]
  },
  {
    category: "Film and television",
    templates: [
      "Pick a film for an evening with {audience}, in the mood {mood}, that nobody has seen five times.",
      "Explain how {name} builds suspense in one scene: camera, cut, sound, what is withheld.",
      "Programme a festival of six films on {topic} from six countries, and write a line for each.",
      "Write a review of {name} by someone who walked out, and one by someone who went back the next day.",
      "Recast {name} in {period}: who plays whom, what the twist becomes.",
      "What did {genre} films borrow from the stage, from comics and from each other?",
      "Prepare a class on documentary ethics with clips about {topic} and three dilemmas.",
      "Invent the missing episode of a series in which {character} and {place} finally meet."
    ]
  },
  {
    category: "History",
    templates: [
      "Describe a day of a {role} in {place} during {period}, from waking to sleep, with smells and prices.",
      "What caused {topic}? Separate the spark from the dry wood, and say what historians still argue about.",
      "Write a newspaper front page for the day on which {topic} became known in {place}.",
      "If {subject} had failed, what would have changed within ten years, and what would not?",
      "Interview someone from {period} about {topic}; let them be wrong in the ways people were wrong then.",
      "Trace the journey of {material} along the trade routes of {period}, from hand to hand.",
      "Name five objects in a museum that tell the story of {topic} better than any battle.",
      "Check this scene of a historical novel for things that did not exist yet: {text}"
    ]
  },
  {
    category: "Humour",
    templates: [
      "Write a complaint of a {animal} to the management of {company}, in perfect office language.",
      "Make a list of honest job titles in {industry}.",
      "Tell a joke about {topic} that is kind to everyone in it, then explain it until it is no longer funny.",
      "Write the instruction manual for {product} as if assembled by people who have only heard of it.",
      "Report a children's football match in {place} in the voice of a war correspondent who fears for the snacks.",
      "Compose a horoscope for {role}s that is suspiciously specific.",
      "Turn this dull notice into something people would photograph: {text}",
      "Invent the terms and conditions of borrowing {product} from a close friend."
    ]
  },
  {
    category: "Art and museums",
    templates: [
      "Explain {style} in painting by what its artists refused to do.",
      "Write the label for an artwork called {name}: sixty words, no jargon, one thing to look for twice.",
      "Guide {audience} through a museum in {duration}: five works, where to stand, what to ask.",
      "Describe a painting of {subject} to someone who cannot see it, from the whole to the detail.",
      "How would {topic} look as a sculpture of {material}, a performance and a garden?",
      "Plan an exhibition about {topic} with three rooms and a question over each door.",
      "Teach me to draw {subject} in ten steps that hide the difficulty.",
      "Who made art in {place} during {period} and was forgotten? Ask where one could begin to look."
    ]
  },
  {
    category: "Sustainability",
    templates: [
      "Compare the footprint of {product} made of {material} with two alternatives, over its whole life.",
      "List ten changes for {audience} by effect, not by how often they are talked about.",
      "Plan a repair event in {place}: helpers, tools, rules, how to measure what was saved.",
      "Audit a small {industry} business for waste: where to look, what to weigh, quick wins under {budget}.",
      "Write a proposal to {company} to stop using {material}, with costs, objections and a trial.",
      "Explain {topic} and the climate to {audience} without fear and without soothing.",
      "Design a month without {product} for a household, with a diary of what is missed.",
      "Which claim on this label is regulated, which is vague, and which means nothing? {text}"
    ]
  }
]
