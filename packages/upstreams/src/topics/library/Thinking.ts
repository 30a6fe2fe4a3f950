/** Finding out what is so, and deciding what to do. */
import type { Topic } from "../Topic.ts"

export const thinking: ReadonlyArray<Topic> = [
  {
    category: "Summaries and reading",
    templates: [
      "Sum this up three times: in a sentence, in a paragraph, and in {length}: {text}",
      "Extract from this text every number with its unit and what it measures, as a table: {text}",
      "What does the author want me to believe, what evidence is given, and what is only implied? {text}",
      "Compare these two texts: where they agree, where they differ, which facts only one of them has: {text}",
      "Write the questions that the following text answers, in the order of their importance to {audience}: {text}",
      "Make a timeline of all events below with dates, and mark those that are uncertain: {text}",
      "Tell me whether this is worth my {duration} if I care about {topic}, and which part to start with: {text}",
      "Quote the five most telling sentences, unchanged, and say why each was chosen: {text}"
    ]
  },
  {
    category: "Research planning",
    templates: [
      "Turn my interest in {topic} into three research questions that can be answered in {duration}.",
      "Suggest search terms, synonyms and neighbouring fields for finding literature about {topic}.",
      "Which kinds of sources on {topic} would disagree with each other, and how would I judge between them?",
      "Draft an ethics statement for a study with {audience}: consent, risk, storage, withdrawal.",
      "Write a structured abstract for this paper in {length}: {text}",
      "Choose between interviews, a survey and observation for learning about {problem}; argue against your choice, too.",
      "List what would have to be measured to settle the dispute about {topic}, and who could pay for it.",
      "Play the reviewer of this proposal: two strengths, three weaknesses, one fatal question: {text}"
    ]
  },
  {
    category: "Data analysis",
    templates: [
      "Describe this data set before analysing it: columns, units, gaps, oddities, what one row stands for: {data}",
      "Find the three most interesting differences between groups in here, with how large and how sure: {data}",
      "Write code in {technology} that cleans the following table, and list each rule that it applies: {data}",
      "What could explain the jump in these figures other than {topic}? Give checks that tell the causes apart: {data}",
      "Propose a dashboard for a {role} with at most five figures, each tied to something they can do.",
      "Forecast the next {duration} with the simplest method that is not misleading, and say how it could fail: {data}",
      "Turn this analysis into advice for {audience}, leading with the decision and not with the method: {text}",
      "Define a metric for {goal} that is hard to game, then show how someone would still game it."
    ]
  },
  {
    category: "Decisions",
    templates: [
      "Help me decide between these options: ask for my criteria, weigh them, and show what would change the answer: {text}",
      "List the second and third consequences of {topic}, a year and ten years from now.",
      "Argue for {topic} as well as its best advocate would, then against it as well as its best critic.",
      "What would I need to learn to decide about {problem} today instead of next month?",
      "Play five advisers to a {role} on {topic}: the cautious, the bold, the kind, the stingy, the outsider.",
      "Find the reversible version of this plan that teaches me the same thing: {text}",
      "Write down a decision on {topic} now, so that in a year I can judge the reasoning and not the luck.",
      "Which costs of {goal} are already sunk, and would I begin it again knowing what I know?"
    ]
  },
  {
    category: "Brainstorming",
    templates: [
      "Give thirty ideas for {goal}: ten sensible, ten strange, ten that sound wrong at first.",
      "Solve {problem} as a {role} would, as a child would, and as someone with no money at all.",
      "Combine {topic} with {material} in ten ways, and pick the two that could be built this week.",
      "Turn the problem around: how could we make {problem} as bad as possible? Then reverse each answer.",
      "Take this idea and change one thing at a time: size, place, price, user, season, opposite: {text}",
      "Ask me why five times about {problem}, waiting for my reply, and name the cause behind the cause.",
      "Suggest constraints that would force a fresh solution to {goal}, such as no screen or one hour.",
      "Collect examples of how nature, sport and {industry} each deal with {problem}."
    ]
  },
  {
    category: "Critical thinking",
    templates: [
      "Check this argument for leaps, and rebuild its strongest honest version: {text}",
      "Which biases could lead {audience} astray about {topic}, and what habit guards against each?",
      "Separate the following into facts, opinions, forecasts and things said to persuade: {text}",
      "How would the world look if the claim were false? Apply that to: {text}",
      "Estimate the base rate before judging this story about {topic}, and explain how it shifts the verdict.",
      "Write the fair question that both sides in the quarrel about {topic} could agree to test.",
      "Judge this chart or statistic: what is left out, which axis misleads, what a fairer one would say: {data}",
      "Name the expert who would disagree with you about {topic}, and let them reply."
    ]
  },
  {
    category: "Philosophy and ethics",
    templates: [
      "Invent a thought experiment about {topic} in which our first intuition turns out to be unreliable.",
      "Let three thinkers from different centuries discuss {topic} over a meal in {place}.",
      "A {role} faces {problem}. Lay out what duty, consequences and character each advise, and where they clash.",
      "Is it fair that {topic}? Give the best case on both sides before you say anything else.",
      "Explain one idea of a thinker from {period} through a scene in a supermarket.",
      "Write house rules for machines that make decisions about {topic}, and a case that breaks each.",
      "What would people in two hundred years find strange about how we treat {topic}?",
      "Question me in the manner of Socrates about what I mean by {topic}, gently, one step at a time."
    ]
  }
]
