export const name = 'contracts';
