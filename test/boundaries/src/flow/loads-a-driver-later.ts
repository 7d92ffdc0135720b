// forbidden: own-driver: amqplib
export const driver = () => import('amqplib');
