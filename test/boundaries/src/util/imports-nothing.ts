export const help = 'util';
