// Every statement's text by its name. Names are unique: pg prepares one text under one name.

const texts = new Map<string, string>();

export function registerStatement(name: string, text: string): void {
  const known = texts.get(name);
  if (known === text) return;
  if (known !== undefined) throw new Error(`two statements are named ${name}`);
  texts.set(name, text);
}
