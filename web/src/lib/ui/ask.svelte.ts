// Questions before something that cannot be taken back, and short words about what was done. App.svelte shows both.
import { capital, seen } from '../show';

export interface Question {
  title: string;
  text: string;
  /** The label of the button that does it. */
  act: string;
  /** The label of the button that does nothing; default Cancel. */
  keep?: string;
  danger?: boolean;
  /** A box beside the question. */
  option?: string;
}

/** The answer: whether, and whether with the option. */
export interface Answer {
  yes: boolean;
  option: boolean;
}

interface Asked extends Question {
  answer: (answer: Answer) => void;
}

class Talk {
  question: Asked | undefined = $state.raw();
  said: { text: string; bad: boolean } | undefined = $state.raw();
  /** How many windows are open. */
  windows = $state(0);
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Asks, and waits for the answer. */
  ask(question: Question): Promise<Answer> {
    return new Promise((resolve) => {
      this.question = {
        ...question,
        title: seen(question.title),
        text: seen(question.text),
        answer: (answer) => {
          this.question = undefined;
          resolve(answer);
        },
      };
    });
  }

  /** Says something for some seconds. */
  say(text: string, bad = false): void {
    clearTimeout(this.timer);
    this.said = { text: capital(seen(text)), bad };
    this.timer = setTimeout(() => (this.said = undefined), bad ? 12_000 : 5_000);
  }

  hush(): void {
    this.said = undefined;
  }
}

export const talk = new Talk();
