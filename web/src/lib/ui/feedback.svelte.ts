// Confirmation dialogs and toasts, as state. Feedback.svelte shows them.
import { capitalize, escapeBidi } from '../format';

export interface Question {
  title: string;
  text: string;
  /** The label of the button that does it. */
  action: string;
  /** The label of the button that does nothing; default Cancel. */
  keep?: string;
  danger?: boolean;
  /** The label of a checkbox in the dialog. */
  option?: string;
}

/** The user's answer, and whether the checkbox was ticked. */
export interface Answer {
  yes: boolean;
  option: boolean;
}

interface OpenQuestion extends Question {
  answer: (answer: Answer) => void;
}

class Feedback {
  question: OpenQuestion | undefined = $state.raw();
  message: { text: string; bad: boolean } | undefined = $state.raw();
  /** How many dialogs are open. */
  dialogs = $state(0);
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Opens a confirmation dialog and waits for the answer. */
  confirm(question: Question): Promise<Answer> {
    return new Promise((resolve) => {
      this.question = {
        ...question,
        title: escapeBidi(question.title),
        text: escapeBidi(question.text),
        answer: (answer) => {
          this.question = undefined;
          resolve(answer);
        },
      };
    });
  }

  /** Shows a message for a few seconds. */
  toast(text: string, bad = false): void {
    clearTimeout(this.timer);
    this.message = { text: capitalize(escapeBidi(text)), bad };
    this.timer = setTimeout(() => (this.message = undefined), bad ? 12_000 : 5_000);
  }

  dismiss(): void {
    this.message = undefined;
  }
}

export const feedback = new Feedback();
