/** Being found, understood and remembered. */
import type { Topic } from "../Topic.ts"

export const marketing: ReadonlyArray<Topic> = [
  {
    category: "E-mail campaigns",
    templates: [
      "Write a welcome sequence of four e-mails for people who just bought {product}, each with one purpose.",
      "Give me twelve subject lines under 45 characters for a message about {topic}, without exclamation marks.",
      "Win back subscribers who have not opened anything for {duration}: one message, {tone}, with an easy way out.",
      "Draft the newsletter of {company} for this month from these notes; the most useful thing first: {text}",
      "Invite {audience} to {occasion} with date, place, reason to come, and one sentence for the undecided.",
      "Write a cold e-mail to a {role} in {industry} that could not have been sent to anyone else.",
      "Turn a dull shipping confirmation for {product} into a moment people like, in {length}.",
      "Plan an experiment on our e-mails: one thing to change, how many recipients, when to stop, how to read the result."
    ]
  },
  {
    category: "Social media posts",
    templates: [
      "Write a week of posts for {company} on {topic}: two useful, two personal, one question, one joke, one quiet.",
      "Condense this article into a thread of seven posts where each one stands on its own: {text}",
      "Caption a photo of {subject} in three ways: {tone}, curious, and under five words.",
      "Suggest a recurring format that a {role} could keep up every Friday in twenty minutes.",
      "Answer this angry comment about {product} in public, briefly, and without asking to move to private messages: {text}",
      "Announce {goal} without boasting: thank those who made it possible and say what it changes for readers.",
      "Find the angle in {topic} that {audience} would send to a friend, and write that post.",
      "Script a 30-second vertical video about {product}: hook, proof, twist, ending that loops to the start."
    ]
  },
  {
    category: "Advertising copy",
    templates: [
      "Write five print ads for {product}, each with a headline, three lines and a reason to believe.",
      "Radio spot of twenty seconds for {company} in {place}, two speakers, no jingle.",
      "Describe {product} to {audience} without any adjective at all.",
      "Produce search ads for {topic}: eight headlines of at most 30 characters, four descriptions of at most 90.",
      "Make a poster for {occasion} work from twenty metres away: seven words and one image.",
      "Write an ad for {product} that admits its largest weakness in the first line.",
      "Give one benefit of {product} in ten voices, from {tone} to deadpan.",
      "Adapt the slogan below for {place} so that it keeps its wit in {language}: {text}"
    ]
  },
  {
    category: "Product descriptions",
    templates: [
      "Describe {product} for an online shop in {length}: who it is for, what it replaces, what comes in the box.",
      "Turn this specification into sentences that a first-time buyer understands: {data}",
      "Write the comparison table between {product} and its two nearest rivals, including a row where it loses.",
      "Explain the care of {material} on a label of forty words.",
      "Answer the ten questions people have before buying {product} online and cannot touch it.",
      "Name twelve scents, colours or flavours for {product} that hint at {place} without naming it.",
      "Tell the story of how {product} is made in six steps, from {material} to parcel.",
      "Write the allergy and safety notes of {product} clearly, in the order in which they matter."
    ]
  },
  {
    category: "Brand names and voice",
    templates: [
      "Propose twenty names for a company that does {topic}: short, easy to say in {language}, with the idea behind each.",
      "Define the voice of {company} in four pairs of words: we are this, but never that.",
      "Rewrite this paragraph as {company} would say it, then as it would never say it: {text}",
      "Check the name {name} for meanings, sounds and mishearings that {audience} might stumble over.",
      "Write the sentence under the logo of {company}: what it does, for whom, in at most nine words.",
      "Draft a manifesto of {length} for a brand that believes {topic}, ending with something readers can do.",
      "If {company} were a shop in {place}, what would you see, smell and hear at the door?",
      "Create naming rules for the product family of {company}, and apply them to four imaginary products."
    ]
  },
  {
    category: "Search and web pages",
    templates: [
      "List the questions that people type when they look for {product}, grouped by how close they are to buying.",
      "Write the landing page of {product}: headline, proof, three benefits, one objection answered, one button.",
      "Suggest titles and meta descriptions for these pages, each within the usual limits of length: {data}",
      "Plan a content hub about {topic} with a main page, eight sub-pages, and the links between them.",
      "Write an about page for {company} that talks more about the reader than about us.",
      "Improve the accessibility of this page text: headings, link words, image descriptions, reading order: {text}",
      "Audit this page as a first-time visitor from {place}: what is unclear within five seconds, ten, and a minute: {text}",
      "Draft the error pages of {product} for a missing page, no connection and maintenance, {tone} but helpful."
    ]
  }
]
