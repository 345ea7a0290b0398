"""Style transfer as a notebook has it: eager steps, no strategy, no compiled function."""

import tensorflow as tf

model = tf.keras.applications.VGG19(include_top=False)
image = tf.Variable(tf.random.uniform((1, 256, 256, 3)))
optimizer = tf.keras.optimizers.Adam(0.02)

for _ in range(1000):
    with tf.GradientTape() as tape:
        features = model(image)
        loss = tf.reduce_mean(features**2)
    gradient = tape.gradient(loss, image)
    optimizer.apply_gradients([(gradient, image)])
