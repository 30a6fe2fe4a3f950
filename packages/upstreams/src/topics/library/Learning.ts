/** Teaching, learning and finding out. */
import type { Topic } from "../Topic.ts"

export const learning: ReadonlyArray<Topic> = [
  {
    category: "Lesson plans",
    templates: [
      "Plan a lesson of {duration} on {topic} for pupils of {age} years: start, practice, check, what to do with the fast ones.",
      "Design a hands-on activity that shows {topic} with things found in any classroom, cost under {budget}.",
      "Write learning goals for a unit on {topic}, each of which can be seen or heard when it is reached.",
      "Differentiate this worksheet for three levels without making anyone feel small: {text}",
      "Create a rubric for a presentation about {topic}: four criteria, four levels, words a pupil understands.",
      "Suggest a field trip in {place} that teaches {subject}, with tasks for before, during and after.",
      "Turn {topic} into a debate for a class of {number}: motion, sides, evidence cards, closing vote.",
      "Write the note to parents that explains what we will learn about {topic} and how they may help at home."
    ]
  },
  {
    category: "Clear explanations",
    templates: [
      "Explain {topic} to a curious child of {age} years with one comparison and no jargon.",
      "Describe {topic} at five depths: a child, a teenager, a student, a professional, a specialist.",
      "I believe this about {topic}. Show me where my picture breaks down and give a better one: {text}",
      "Teach me {topic} only by asking questions. Wait for my answer each time, and never give the solution away.",
      "Why is {topic} true? Give the intuition first, then the argument, then a case where it seems false.",
      "Compare {topic} with something from cooking, something from sport and something from music.",
      "Tell the history of the idea of {topic} as a relay race: who carried it, from whom, to whom.",
      "What do people of {level} get wrong about {topic} most often, and which sentence clears it up?"
    ]
  },
  {
    category: "Study and exams",
    templates: [
      "Make a revision plan for {subject} over {duration}, two hours a day, hardest parts first, with rest days.",
      "Ask me twenty exam questions on {topic}, mixed in difficulty, and keep score of what I have to repeat.",
      "Turn these notes into flash cards: one fact a card, question in front, answer at the back: {text}",
      "Mark this essay as an examiner in {subject} would, and write what would lift it by one grade: {text}",
      "Give me a memory hook for each item in this list, the sillier the better: {data}",
      "Solve this task step by step, but stop before the last step and let me try: {text}",
      "Condense a chapter on {topic} to a single page that I could learn the evening before: {text}",
      "Write a mock oral exam on {subject}: your question, a fair answer of a {level} student, your follow-up."
    ]
  },
  {
    category: "Language learning",
    templates: [
      "Talk with me in {language} at {level} about {topic}; correct only mistakes that change the meaning.",
      "Write a short dialogue in {language} at a {place} and underline the phrases worth learning by heart.",
      "Give me twenty words in {language} around {topic} with gender, an example and a false friend to beware of.",
      "Explain the difference between these two expressions of {language} to a native speaker of English: {text}",
      "Translate this into {language} twice: as you would to a friend, and as you would to an authority: {text}",
      "Create a fill-in exercise on one point of grammar in {language}, twelve sentences, answers at the end.",
      "Which sounds of {language} are hard for English speakers? Give mouth positions and pairs of words to practise.",
      "Design a month of learning {language} for someone with {duration} a day, built around {goal}."
    ]
  },
  {
    category: "Quizzes and trivia",
    templates: [
      "Write a pub quiz of three rounds on {topic}: easy, tricky, and one where every answer is a number.",
      "Make ten true-or-false statements about {topic} that are harder than they look, with the explanations apart.",
      "Give five clues to the identity of {subject}, from nearly impossible to obvious.",
      "Create a personality test of eight questions that ends in one of four kinds of {role}.",
      "Invent four plausible answers to each of these questions, of which only one is right: {text}",
      "Build a crossword of twelve words about {topic}: list the words and write witty clues.",
      "Set a picture round: describe eight scenes from {place} so that a team can guess without seeing them.",
      "Prepare a tie-break for a quiz on {subject} that nobody can know but everybody can estimate."
    ]
  },
  {
    category: "Mathematics and statistics",
    templates: [
      "Explain {topic} with a picture in words, then with numbers, then with symbols.",
      "Invent three word problems about {topic} for {level}, set in a bakery, on a ship and in space.",
      "Find the error in this proof and mend it if it can be mended: {text}",
      "Which test fits this question and these data, what does it assume, and what would you report? {data}",
      "Estimate {goal} on the back of an envelope; show the powers of ten and where you might be off.",
      "Show how the result changes when each number below is ten per cent larger, one after another: {data}",
      "Derive the formula behind {topic} from things that a pupil of {age} years knows.",
      "Describe a game of chance around {subject} and work out whether I should play it for {budget}."
    ]
  },
  {
    category: "Science experiments",
    templates: [
      "Suggest an experiment at home that makes {topic} visible, with safety notes and what to write down.",
      "Help me form a hypothesis about {problem} that could turn out wrong, and a way to test it in {duration}.",
      "Which variables must stay the same if I want to compare {material} with an alternative fairly?",
      "Write the lab report for these measurements: aim, method, result, doubt, next time: {data}",
      "Explain why the experiment on {topic} failed, judging from this diary, and what to change first: {text}",
      "Design a science fair project for a child of {age} years who loves {animal}s, with materials under {budget}.",
      "Describe how scientists found out about {topic}: the question, the trick of the method, the remaining doubt.",
      "Plan a citizen science week in {place}: what people count, how they report, how mistakes are caught."
    ]
  }
]
